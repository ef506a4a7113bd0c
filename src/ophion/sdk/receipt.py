"""`Receipt`: a transaction that was sent, with its decoded events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ophion.abi.addresses import checksum_address
from ophion.abi.interface import Abi
from ophion.primitives.hexcodec import data as hex_text
from ophion.sdk.backend import SentTransaction
from ophion.sdk.errors import ChainError, UnknownName

if TYPE_CHECKING:
    from ophion.sdk.call_tree import CallTree
    from ophion.sdk.chain import Chain
    from ophion.sdk.contract import Contract


class Event:
    """A log, decoded if the contract is known: `event.args["value"]` or `event.value`."""

    def __init__(
        self, address: str, name: str | None, args: Mapping[str, Any], topics: Sequence[bytes], data: bytes, index: int
    ) -> None:
        self.address = address
        self.name = name
        """Name of the event; None when the ABI of its contract is unknown."""
        self.args = args
        self.topics = topics
        self.data = data
        self.index = index
        """Position of the log in its block."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["args"][name]
        except KeyError:
            raise self._unknown(name) from None

    def __getitem__(self, name: str) -> Any:
        try:
            return self.args[name]
        except KeyError:
            raise self._unknown(name) from None

    def _unknown(self, name: str) -> UnknownName:
        known = ", ".join(self.__dict__.get("args", ())) or "none"
        return UnknownName(f"the event {self.__dict__.get('name')} has no argument '{name}'. Arguments: {known}")

    def __repr__(self) -> str:
        if self.name is None:
            return f"<log of {self.address} topics={[hex_text(one) for one in self.topics]}>"
        return f"{self.name}({', '.join(f'{name}={value!r}' for name, value in self.args.items())})"


def decoded_event(log: Mapping[str, Any], contracts: Mapping[bytes, tuple[str, Abi]]) -> Event:
    """Decode a log of JSON-RPC. `contracts` has names and ABIs, by address. If no ABI fits, the event has no name."""
    address = bytes.fromhex(log["address"][2:])
    topics = [bytes.fromhex(one[2:]) for one in log["topics"]]
    data = bytes.fromhex(log["data"][2:])
    known = contracts.get(address)
    decoded = None if known is None else known[1].decode_log(topics, data)
    if decoded is None:
        # the contract is unknown (for example, another contract created it), or its ABI lacks the event: try all known
        # ABIs
        found = (abi.decode_log(topics, data) for _, abi in contracts.values())
        decoded = next((one for one in found if one is not None), None)
    name, args = (None, {}) if decoded is None else decoded
    return Event(checksum_address(address), name, args, topics, data, int(log.get("logIndex") or "0x0", 16))


class Events(Sequence[Event]):
    """Events of a receipt or of a block range, in order."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = tuple(events)

    def __getitem__(self, position: Any) -> Any:
        """Return the event at a position, or all events with a name."""
        if isinstance(position, str):
            return Events([one for one in self._events if one.name == position])
        return self._events[position]

    def __len__(self) -> int:
        return len(self._events)

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events)

    def __repr__(self) -> str:
        return f"[{', '.join(map(repr, self._events))}]"

    def one(self, name: str) -> Event:
        """Return the only event of this name. Raises `ChainError` unless exactly one event has this name."""
        found = [one for one in self._events if one.name == name]
        if len(found) != 1:
            raise ChainError(f"{len(found)} events are named {name}; there are {self!r}")
        return found[0]


class Receipt:
    """A transaction and its result."""

    def __init__(self, chain: Chain, sent: SentTransaction, contract: Contract | None = None) -> None:
        self._chain = chain
        self._sent = sent
        self.contract = contract
        """The contract that the transaction has created."""

    @property
    def hash(self) -> str:
        """Hash of the transaction."""
        return hex_text(self._sent.hash)

    @property
    def is_pending(self) -> bool:
        """Whether the transaction is not mined yet."""
        return self._sent.succeeded is None and self._find() is None

    @property
    def succeeded(self) -> bool:
        """Whether the transaction was executed without failure."""
        if self._sent.succeeded is not None:
            return self._sent.succeeded
        return bool(int(self.fields.get("status", "0x0"), 16))

    @property
    def gas_used(self) -> int:
        return self._sent.gas_used or int(self.fields["gasUsed"], 16)

    @property
    def block_number(self) -> int:
        number = self._sent.block_number
        return int(self.fields["blockNumber"], 16) if number is None else number

    @property
    def contract_address(self) -> str | None:
        """Address of the contract that the transaction has created; None for a call."""
        return None if self._sent.created is None else checksum_address(self._sent.created)

    def _find(self) -> Mapping[str, Any] | None:
        return self._chain.backend.receipt(self._sent)

    @cached_property
    def fields(self) -> Mapping[str, Any]:
        """The receipt as JSON-RPC returns it."""
        found = self._find()
        if found is None:
            raise ChainError(f"The transaction {self.hash} is not in a block. Mine one with chain.mine().")
        return found

    @cached_property
    def events(self) -> Events:
        """Decoded logs of the transaction."""
        return self._chain.decode_logs(self.fields["logs"])

    def trace(self) -> CallTree:
        """Run the transaction again and return its calls as a tree."""
        return self._chain.trace(self.hash)

    @property
    def return_value(self) -> Any:
        """Return value of the called function, read from a trace."""
        return self.trace().result

    def __repr__(self) -> str:
        if self.is_pending:
            return f"<Receipt {self.hash} pending>"
        status = "succeeded" if self.succeeded else "failed"
        return f"<Receipt {self.hash} {status} block={self.block_number} gas_used={self.gas_used}>"

    def _repr_html_(self) -> str:
        from ophion.sdk.html import table

        if self.is_pending:
            return table("Receipt", {"hash": self.hash, "status": "pending"})
        rows = {
            "hash": self.hash,
            "status": "succeeded" if self.succeeded else "failed",
            "block": self.block_number,
            "gas used": self.gas_used,
        }
        if self.contract_address is not None:
            rows["contract"] = self.contract_address
        for event in self.events:
            rows[f"event {event.index}"] = repr(event)
        return table("Receipt", rows)
