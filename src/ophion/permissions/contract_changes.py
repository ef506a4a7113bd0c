"""Rule changes made by transactions, read from the logs of the contracts.

An ingress logs every change of its rules, and the admin contract logs changes of administrators. The bloom filter of a
block excludes nearly all blocks without changes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from ophion.chain.chain import Chain
from ophion.chain.events import ChainBlock
from ophion.native.crypto import keccak256
from ophion.permissions.contract_abi import ADMIN, RULES, named_url, read_named_node, read_packed_node
from ophion.permissions.contract_calls import answer_of
from ophion.primitives.header import HashedHeader
from ophion.primitives.types import Address


def _topic(signature: str) -> bytes:
    return keccak256(signature.encode())


def _selector(signature: str) -> bytes:
    return _topic(signature)[:4]


ACCOUNTS, NODES, ADMINS = "accounts", "nodes", "admins"
_ADDED, _REMOVED = "added", "removed"
_EVENTS: Final[Mapping[bytes, tuple[str, str]]] = {
    _topic("AccountAdded(bool,address)"): (ACCOUNTS, _ADDED),
    _topic("AccountRemoved(bool,address)"): (ACCOUNTS, _REMOVED),
    _topic("NodeAdded(bool,bytes32,bytes32,bytes16,uint16)"): (NODES, _ADDED),
    _topic("NodeRemoved(bool,bytes32,bytes32,bytes16,uint16)"): (NODES, _REMOVED),
    _topic("NodeAdded(bool,string,string,uint16)"): (NODES, _ADDED),
    _topic("NodeRemoved(bool,string,string,uint16)"): (NODES, _REMOVED),
    _topic("AdminAdded(bool,address,string)"): (ADMINS, _ADDED),
    _topic("AdminRemoved(bool,address)"): (ADMINS, _REMOVED),
}
_ADMIN_EVENTS: Final = tuple(topic for topic, (kind, _) in _EVENTS.items() if kind == ADMINS)
_REGISTERED: Final = _topic("RegistryUpdated(address,bytes32)")


class _Log(NamedTuple):
    """One log of a rules contract in a block."""

    position: int
    """Index of the transaction in the block."""
    transaction: str
    address: Address
    topic: bytes
    data: bytes


class ContractChanges:
    """Reads rule changes from the logs of some ingress contracts and of the contracts that they register."""

    def __init__(self, chain: Chain, ingresses: Mapping[str, Address]) -> None:
        self._chain = chain
        self._ingresses = ingresses

    def may_be_in(self, block: ChainBlock) -> bool:
        """Whether a block may contain a rule change, according to its bloom filter."""
        bloom = block.header.header.logs_bloom
        items = (*self._ingresses.values(), *_ADMIN_EVENTS)
        return block.body.transaction_count > 0 and any(in_bloom(bloom, one) for one in items)

    def of(self, block: ChainBlock) -> list[dict[str, Any]]:
        """Return a record of each transaction that changed rules. Reads the database: do not call on the event loop."""
        logs = list(_logs(self._chain, block))
        found = [
            record for kind, ingress in self._ingresses.items() for record in self._of_rules(block, kind, ingress, logs)
        ]
        return found + self._of_admins(block, logs)

    def _of_rules(self, block: ChainBlock, kind: str, ingress: Address, logs: list[_Log]) -> list[dict[str, Any]]:
        announced = [log for log in logs if log.address == ingress]
        if not announced:
            return []
        rules = self._registered(block.header, ingress, RULES)
        matching = [log for log in logs if log.address == rules]
        records = [
            _record(block, kind, ingress, mark, [log for log in matching if log.transaction == mark.transaction])
            for mark in {log.transaction: log for log in announced}.values()
        ]
        for record in records:
            registered = [
                log for log in announced if log.topic == _REGISTERED and log.transaction == record["transaction"]
            ]
            if registered:
                record["registered"] = dict(map(_registration, registered))
        return self._counted(block, records, lambda header: self._size(header, ingress))

    def _of_admins(self, block: ChainBlock, logs: list[_Log]) -> list[dict[str, Any]]:
        admin_contracts = {self._registered(block.header, ingress, ADMIN) for ingress in self._ingresses.values()}
        matching = [log for log in logs if log.topic in _ADMIN_EVENTS and log.address in admin_contracts]
        if not matching:
            return []
        admin_contract = matching[0].address
        records = [
            _record(
                block, ADMINS, admin_contract, mark, [log for log in matching if log.transaction == mark.transaction]
            )
            for mark in {log.transaction: log for log in matching}.values()
        ]
        return self._counted(block, records, lambda header: self._admins(header, admin_contract))

    def _counted(self, block: ChainBlock, records: list[dict[str, Any]], count: Any) -> list[dict[str, Any]]:
        """Add to each record the number of permitted accounts, nodes or administrators before and after the change. The
        number is null if the contract does not report it.
        """
        parent = self._chain.header(block.header.parent_hash)
        number = None if parent is None else count(parent)
        for record in records:
            record["before"] = number
            number = None if number is None else number + len(record[_ADDED]) - len(record[_REMOVED])
            record["after"] = number
        if records:
            records[-1]["after"] = count(block.header)
        return records

    def _size(self, header: HashedHeader, ingress: Address) -> int | None:
        rules = self._registered(header, ingress, RULES)
        answer = b"" if rules is None else answer_of(self._chain, header, rules, _selector("getSize()"))
        return int.from_bytes(answer, "big") if len(answer) == 32 else None

    def _admins(self, header: HashedHeader, admin_contract: Address) -> int | None:
        answer = answer_of(self._chain, header, admin_contract, _selector("getAdmins()"))
        return int.from_bytes(answer[32:64], "big") if len(answer) >= 64 else None

    def _registered(self, header: HashedHeader, ingress: Address, name: bytes) -> Address | None:
        answer = answer_of(self._chain, header, ingress, _selector("getContractAddress(bytes32)") + name)
        return answer[12:] if len(answer) == 32 and any(answer) else None


def _logs(chain: Chain, block: ChainBlock) -> Iterator[_Log]:
    for one in json.loads(chain.store.block_logs_json(block.header.hash, [], [], False) or b"[]"):
        topic = bytes.fromhex(one["topics"][0][2:]) if one["topics"] else b""
        address, data = bytes.fromhex(one["address"][2:]), bytes.fromhex(one["data"][2:])
        yield _Log(int(one["transactionIndex"], 16), one["transactionHash"], address, topic, data)


def _record(block: ChainBlock, kind: str, contract: Address, mark: _Log, matching: list[_Log]) -> dict[str, Any]:
    return {
        "rules": kind,
        "source": "contract",
        "contract": "0x" + contract.hex(),
        "block": block.header.number,
        "transaction": mark.transaction,
        "by": "0x" + block.body.transactions[mark.position].sender.hex(),
        _ADDED: _entries(matching, kind, _ADDED),
        _REMOVED: _entries(matching, kind, _REMOVED),
    }


def _registration(log: _Log) -> tuple[str, str]:
    return log.data[32:64].rstrip(b"\0").decode(errors="replace"), "0x" + log.data[12:32].hex()


def _entries(logs: list[_Log], kind: str, verb: str) -> list[str]:
    """Return the accounts or nodes (`kind`) that the logs report as added or removed (`verb`). Skips changes that the
    contract reports as failed.
    """
    changed = [log.data for log in logs if _EVENTS.get(log.topic) == (kind, verb) and any(log.data[:32])]
    return [_node(data) if kind == NODES else "0x" + data[44:64].hex() for data in changed]


def _node(data: bytes) -> str:
    node, name = read_packed_node(data[32:]), read_named_node(data, 32)
    if node is not None:
        return node.url
    return "0x" + data[32:].hex() if name is None else named_url(name)


def in_bloom(bloom: bytes, data: bytes) -> bool:
    """Whether a bloom filter may contain an item. False means that the item is certainly absent."""
    value, hashed = int.from_bytes(bloom, "big"), keccak256(data)
    return all(value >> (int.from_bytes(hashed[at : at + 2], "big") & 2047) & 1 for at in (0, 2, 4))
