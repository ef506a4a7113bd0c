"""Client of the permission contracts of a network, over the JSON-RPC of a node."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Final

from ophion.cli.node_client import RpcNode
from ophion.errors import CommandError
from ophion.native.crypto import keccak256
from ophion.permissions.contract_abi import (
    ADMIN,
    RULES,
    named_node,
    named_url,
    node_question,
    packed_node,
    read_named_node,
    read_packed_node,
)
from ophion.permissions.contract_genesis import ACCOUNT_INGRESS, NODE_INGRESS
from ophion.primitives.enode import Enode
from ophion.primitives.types import Address

_WORD: Final = 32
_MAX_MEMBERS: Final = 100_000
"""Maximum number of listed nodes or accounts. A hostile node could otherwise announce any number."""


class RulesContracts:
    """The permission contracts of a network: the ingress contracts, and the rules and administration contracts that are
    registered there.
    """

    def __init__(self, node: RpcNode, accounts: Address = ACCOUNT_INGRESS, nodes: Address = NODE_INGRESS) -> None:
        self.node = node
        self.account_rules = self._registered(accounts, RULES)
        self.node_rules = self._registered(nodes, RULES)
        self._admins = self._registered(accounts, ADMIN) or self._registered(nodes, ADMIN)

    @property
    def administration(self) -> Address:
        if self._admins is None:
            raise CommandError("There is no list of administrators on this network.")
        return self._admins

    def admins(self) -> list[Address]:
        return _addresses(self.node.call(self.administration, _selector("getAdmins()")))

    def accounts(self) -> Iterator[Address]:
        for word in self._members(self.account_rules, "accounts"):
            yield word[12:32]

    def nodes(self) -> Iterator[str]:
        """Return the URLs of permitted nodes."""
        for words in self._members(self.node_rules, "nodes"):
            name, node = (read_named_node(words), None) if self.has_names else (None, read_packed_node(words))
            url = named_url(name) if name is not None else None if node is None else node.url
            yield url or f"a node that cannot be read (0x{words.hex()})"

    def is_admin(self, account: Address) -> bool:
        answer = self.node.call(self.administration, _selector("isAuthorized(address)") + account.rjust(_WORD, b"\0"))
        return any(answer)

    def has_account(self, account: Address) -> bool:
        rules = _needed(self.account_rules, "accounts")
        answer = self.node.call(rules, _selector("accountPermitted(address)") + account.rjust(_WORD, b"\0"))
        return any(answer)

    def has_node(self, enode: Enode) -> bool:
        rules = _needed(self.node_rules, "nodes")
        method = "connectionAllowed" if self.has_names else "enodePermitted"
        return any(self.node.call(rules, self.node_call(method, enode)))

    def node_call(self, method: str, enode: Enode) -> bytes:
        """Encode a call about a node, in the interface version of the contract."""
        if self.has_names:
            return _selector(f"{method}(string,string,uint16)") + named_node(enode)
        if enode.host:
            raise CommandError(f"The node rules contract lists addresses only: give the address of {enode.host}.")
        return _selector(f"{method}(bytes32,bytes32,bytes16,uint16)") + packed_node(enode)

    @cached_property
    def has_names(self) -> bool:
        """Whether the node rules have interface version 2. Calls a method that only version 2 has."""
        rules = _needed(self.node_rules, "nodes")
        try:
            answer = self.node.call(rules, node_question(Enode(bytes(64), "0.0.0.0", 0, 0)))
        except CommandError:
            return False
        return len(answer) == _WORD

    def _registered(self, ingress: Address, name: bytes) -> Address | None:
        answer = self.node.call(ingress, _selector("getContractAddress(bytes32)") + name)
        return answer[12:32] if len(answer) == _WORD and any(answer) else None

    def _members(self, rules: Address | None, what: str) -> Iterator[bytes]:
        rules = _needed(rules, what)
        size = int.from_bytes(self.node.call(rules, _selector("getSize()")), "big")
        if size > _MAX_MEMBERS:
            raise CommandError(f"The rules for {what} have {size} entries; at most {_MAX_MEMBERS} can be listed.")
        for index in range(size):
            yield self.node.call(rules, _selector("getByIndex(uint256)") + index.to_bytes(_WORD, "big"))


def account_call(method: str, account: Address) -> bytes:
    """Encode the call data of `method(address)`."""
    return _selector(f"{method}(address)") + account.rjust(_WORD, b"\0")


def _needed(rules: Address | None, what: str) -> Address:
    if rules is None:
        raise CommandError(f"There are no rules for {what} on this network.")
    return rules


def _selector(signature: str) -> bytes:
    return keccak256(signature.encode())[:4]


def _addresses(answer: bytes) -> list[Address]:
    count = int.from_bytes(answer[32:64], "big")
    if len(answer) < 64 + 32 * count:
        raise CommandError("The contract returns fewer addresses than it announces.")
    return [answer[64 + 32 * position + 12 : 96 + 32 * position] for position in range(count)]
