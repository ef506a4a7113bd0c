"""Development networks with permission contracts in their genesis."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ophion.chainspec.dev_network import _document
from ophion.chainspec.genesis import Genesis, parse_genesis
from ophion.native.crypto import keccak256
from ophion.permissions.contract_genesis import account_contracts, node_contracts
from ophion.primitives.enode import Enode
from ophion.primitives.types import Address


def permissioned_genesis(
    admins: Sequence[Address],
    accounts: Sequence[Address] | None = None,
    nodes: Sequence[Enode] | None = None,
    fork: str = "osaka",
    version: int = 1,
) -> Genesis:
    """Return the genesis of a development network with permission contracts for accounts, for nodes, or both."""
    document = _document(fork)
    contracts = {} if accounts is None else account_contracts(admins, accounts)
    contracts |= {} if nodes is None else node_contracts(admins, nodes, version)
    for address, account in contracts.items():
        document["alloc"][address.hex()] = account
    return parse_genesis(json.dumps(document), is_dev=True)


def calldata(signature: str, *words: bytes | int) -> bytes:
    """Encode a call whose arguments have one word each: numbers and addresses right-aligned, longer bytes unchanged."""
    selector = keccak256(signature.encode())[:4]
    encoded = (word.to_bytes(32, "big") if isinstance(word, int) else word.rjust(32, b"\0") for word in words)
    return selector + b"".join(encoded)
