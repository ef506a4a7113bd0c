"""Checks the entries of a request to change a list, in the documented order (operations.md 10.3, json-rpc.md 5.11)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Final, TypeVar

from msgspec.structs import replace

from ophion.errors import DecodeError, RulesError
from ophion.permissions.entry_codec import EntryCodec
from ophion.primitives.enode import Enode
from ophion.primitives.types import Address

T = TypeVar("T")

_ACCOUNT: Final = re.compile(r"0x[0-9a-fA-F]{40}")


def read_account(text: str) -> Address:
    """Read an account of a list: 0x and 40 hex digits."""
    if not _ACCOUNT.fullmatch(text):
        raise ValueError(f"Invalid account {text}")
    return bytes.fromhex(text[2:])


def read_node(text: str, *, host_names: bool = False) -> Enode:
    """Read an enode URL. With `host_names`, the URL may have a host name instead of an IP address."""
    try:
        return Enode.parse(text, host_names=host_names)
    except DecodeError as error:
        raise ValueError(error.message) from None


ACCOUNTS: Final = EntryCodec(
    "account", read_account, lambda account: f"0x{account.hex()}", lambda text, error: f"Invalid account {text}"
)
NODES: Final = EntryCodec("node", read_node, lambda enode: enode.url, lambda text, error: f"{error} ({text})")
NAMED_NODES: Final = replace(NODES, read=partial(read_node, host_names=True))
"""Codec of node lists whose entries may have host names."""


def requested_accounts(texts: Sequence[str]) -> list[Address]:
    """Read the accounts of a request. The request needs at least one account, and all accounts must be valid and
    distinct.
    """
    if not texts:
        raise RulesError("Request contains an empty list of accounts")
    accounts = _read(texts, ACCOUNTS)
    if len(set(accounts)) < len(accounts):
        raise RulesError("Request contains duplicate accounts")
    return accounts


def requested_nodes(texts: Sequence[str], codec: EntryCodec[Enode] = NODES) -> list[Enode]:
    """Read the nodes of a request. The request needs at least one node, and all nodes must be valid and distinct enode
    URLs.
    """
    if not texts:
        raise RulesError("Request contains an empty list of nodes")
    if len(set(texts)) < len(texts):
        raise RulesError("Request contains duplicate nodes")
    nodes = _read(texts, codec)
    if len(set(nodes)) < len(nodes):
        raise RulesError("Request contains duplicate nodes")
    return nodes


def _read(texts: Sequence[str], codec: EntryCodec[T]) -> list[T]:
    items: list[T] = []
    for text in texts:
        try:
            items.append(codec.read(text))
        except ValueError as error:
            raise RulesError(f"Request contains an invalid {codec.one}", str(error)) from None
    return items
