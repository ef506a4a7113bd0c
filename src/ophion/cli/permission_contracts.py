"""The rules contracts of a network, read and changed through the JSON-RPC of a node."""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final

from ophion.errors import CommandError
from ophion.native.crypto import PrivateKey, keccak256
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
from ophion.primitives import rlp
from ophion.primitives.enode import Enode
from ophion.primitives.types import Address

_TIMEOUT_S: Final = 30.0
_POLL_S: Final = 0.2
_WORD: Final = 32


class RpcNode:
    """A node that is asked over HTTP."""

    def __init__(self, url: str, token: str | None = None) -> None:
        if not url.startswith(("http://", "https://")):
            raise CommandError(f"{url} is not the address of a JSON-RPC service: http:// or https:// is expected")
        self._url = url
        self._headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})

    def ask(self, method: str, *params: Any) -> Any:
        """The result; `CommandError` with the words of the node, or why it cannot be reached."""
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        request = urllib.request.Request(self._url, body, self._headers)
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as response:
                answer = json.loads(response.read())
        except urllib.error.HTTPError as error:
            raise CommandError(f"The node at {self._url} answers {error.code} {error.reason}.") from None
        except (OSError, ValueError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise CommandError(f"The node at {self._url} cannot be asked: {reason}.") from None
        failure = answer.get("error") if isinstance(answer, dict) else {"message": "no JSON-RPC answer"}
        if failure:
            why = failure.get("data")
            more = f" ({why})" if isinstance(why, str) and not why.startswith("0x") else ""
            raise CommandError(f"{method}: {failure.get('message')}{more}")
        return answer.get("result")

    def call(self, to: Address, data: bytes) -> bytes:
        """The answer of a contract at the head."""
        return bytes.fromhex(self.ask("eth_call", {"to": _hex(to), "data": _hex(data)}, "latest")[2:])

    def send(self, key: PrivateKey, to: Address, data: bytes, limit_s: float) -> int:
        """Send a transaction and wait for its block, whose number is returned."""
        sender = _hex(key.address)
        call = {"from": sender, "to": _hex(to), "data": _hex(data)}
        gas = int(self.ask("eth_estimateGas", call), 16) * 5 // 4
        nonce = int(self.ask("eth_getTransactionCount", sender, "pending"), 16)
        price, chain_id = int(self.ask("eth_gasPrice"), 16), int(self.ask("eth_chainId"), 16)
        fields = [rlp.scalar(nonce), rlp.scalar(price), rlp.scalar(gas), to, b"", data]
        signature = key.sign(keccak256(rlp.encode([*fields, rlp.scalar(chain_id), b"", b""])))
        v, r, s = signature[64] + 35 + 2 * chain_id, signature[:32].lstrip(b"\0"), signature[32:64].lstrip(b"\0")
        tx_hash = self.ask("eth_sendRawTransaction", _hex(rlp.encode([*fields, rlp.scalar(v), r, s])))
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            receipt = self.ask("eth_getTransactionReceipt", tx_hash)
            if receipt is not None:
                number = int(receipt["blockNumber"], 16)
                if receipt.get("status") != "0x1":
                    raise CommandError(f"Transaction {tx_hash} failed in block {number}: nothing was changed.")
                return number
            time.sleep(_POLL_S)
        raise CommandError(f"Transaction {tx_hash} is not in a block after {limit_s:.0f} s; it may still be mined.")


class RulesContracts:
    """Ingress, rules and administration as they are registered now."""

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
        """Their URLs."""
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
        """`method` of a node by the interface that the rules have."""
        if self.has_names:
            return _selector(f"{method}(string,string,uint16)") + named_node(enode)
        return _selector(f"{method}(bytes32,bytes32,bytes16,uint16)") + packed_node(enode)

    @cached_property
    def has_names(self) -> bool:
        """Whether the rules for nodes have the second interface: they answer its question, whomever it is about."""
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
        for index in range(size):
            yield self.node.call(rules, _selector("getByIndex(uint256)") + index.to_bytes(_WORD, "big"))


def account_call(method: str, account: Address) -> bytes:
    """`method(address)`"""
    return _selector(f"{method}(address)") + account.rjust(_WORD, b"\0")


def _needed(rules: Address | None, what: str) -> Address:
    if rules is None:
        raise CommandError(f"There are no rules for {what} on this network.")
    return rules


def _selector(signature: str) -> bytes:
    return keccak256(signature.encode())[:4]


def _addresses(answer: bytes) -> list[Address]:
    count = int.from_bytes(answer[32:64], "big")
    return [answer[64 + 32 * position + 12 : 96 + 32 * position] for position in range(count)]


def _hex(data: bytes) -> str:
    return "0x" + data.hex()
