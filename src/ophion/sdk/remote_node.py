"""`RemoteNode`: a running node behind a URL, as a `Backend`.

Cheat codes use the methods that Anvil, Hardhat and `ophion dev` share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ophion.errors import RpcError
from ophion.primitives.types import ADDRESS_LENGTH
from ophion.runtime.blocking_json_rpc import Failure, JsonRpcClient, NoAnswer
from ophion.sdk.backend import AccountEdit, Block, CallResult, CallSpec, PlainResult, SentTransaction, block_tag
from ophion.sdk.errors import ChainError, TransactionRefused

_REVERTED = 3


class RemoteNode:
    """A node that is reached over HTTP."""

    def __init__(self, url: str) -> None:
        try:
            self._rpc = JsonRpcClient(url, encode=_as_json)
        except NoAnswer as error:
            raise ChainError(error.message) from error
        self.chain_id()

    def request(self, method: str, params: Sequence[Any]) -> Any:
        try:
            (found,) = self._rpc.batch([(method, params)])
        except NoAnswer as error:
            raise ChainError(error.message) from error
        if isinstance(found, Failure):
            raise RpcError(found.code, found.message, found.data)
        return found

    def _number(self, method: str, *params: Any) -> int:
        """Call a method and return its result as an integer."""
        return self._quantity(method, self.request(method, params))

    def _quantity(self, method: str, answer: Any) -> int:
        try:
            return int(answer, 16)
        except (TypeError, ValueError):
            raise self._invalid(method, answer) from None

    def _data(self, method: str, *params: Any) -> bytes:
        """Call a method and return its result as bytes."""
        answer = self.request(method, params)
        try:
            return _bytes(answer)
        except ValueError:
            raise self._invalid(method, answer) from None

    def _block(self, tag: str) -> Mapping[str, Any]:
        answer = self.request("eth_getBlockByNumber", [tag, False])
        if not isinstance(answer, dict):
            raise self._invalid("eth_getBlockByNumber", answer)
        return answer

    def _invalid(self, method: str, answer: Any) -> ChainError:
        return ChainError(f"The node at {self._rpc.address} gives an invalid answer to {method}: {str(answer)[:80]!a}")

    # --- calls and transactions -----------------------------------------------------------------

    def call(self, spec: CallSpec, block: Block = None) -> CallResult:
        try:
            output = self._data("eth_call", _call_object(spec), block_tag(block))
        except RpcError as error:
            data = _revert_data(error.data)
            if data or error.code == _REVERTED or "revert" in error.message.lower():
                return PlainResult("reverted", data)
            return PlainResult("halted", b"", reason=error.message)
        return PlainResult("returned", output)

    def send(self, spec: CallSpec) -> SentTransaction:
        fields = _call_object(spec)
        # set a gas limit, because otherwise the node estimates the gas and refuses a transaction that would fail
        fields.setdefault("gas", self._block("latest").get("gasLimit"))
        try:
            sent = self._data("eth_sendTransaction", fields)
        except RpcError as error:
            raise TransactionRefused(error.message) from error
        found = self.receipt(SentTransaction(sent))
        if found is None:
            return SentTransaction(sent)
        succeeded = found.get("status") == "0x1"
        number = self._quantity("eth_getTransactionReceipt", found.get("blockNumber"))
        created = found.get("contractAddress")
        output = b"" if succeeded else self.call(spec, number - 1).output
        return SentTransaction(
            hash=sent,
            created=self._address(created) if created else None,
            succeeded=succeeded,
            gas_used=self._quantity("eth_getTransactionReceipt", found.get("gasUsed")),
            output=output,
            block_number=number,
        )

    def estimate_gas(self, spec: CallSpec) -> int:
        return self._number("eth_estimateGas", _call_object(spec))

    def receipt(self, sent: SentTransaction) -> Mapping[str, Any] | None:
        found = self.request("eth_getTransactionReceipt", [_hex(sent.hash)])
        if not isinstance(found, dict | None):
            raise self._invalid("eth_getTransactionReceipt", found)
        return found

    # --- state ----------------------------------------------------------------------------------

    def accounts(self) -> Sequence[bytes]:
        answer = self.request("eth_accounts", [])
        if not isinstance(answer, list):
            raise self._invalid("eth_accounts", answer)
        return [self._address(one) for one in answer]

    def _address(self, answer: Any) -> bytes:
        try:
            address = _bytes(answer)
        except ValueError:
            address = b""
        if len(address) != ADDRESS_LENGTH:
            raise ChainError(f"The node at {self._rpc.address} gives an invalid address: {str(answer)[:80]!a}")
        return address

    def private_key(self, address: bytes) -> bytes | None:
        return None

    def balance(self, address: bytes, block: Block = None) -> int:
        return self._number("eth_getBalance", _hex(address), block_tag(block))

    def nonce(self, address: bytes, block: Block = None) -> int:
        return self._number("eth_getTransactionCount", _hex(address), block_tag(block))

    def code(self, address: bytes, block: Block = None) -> bytes:
        return self._data("eth_getCode", _hex(address), block_tag(block))

    def storage(self, address: bytes, slot: bytes, block: Block = None) -> bytes:
        return self._data("eth_getStorageAt", _hex(address), _hex(slot), block_tag(block)).rjust(32, b"\0")

    def chain_id(self) -> int:
        return self._number("eth_chainId")

    def block_number(self) -> int:
        return self._number("eth_blockNumber")

    # --- cheat codes ----------------------------------------------------------------------------

    def next_timestamp(self) -> int:
        return self._quantity("eth_getBlockByNumber", self._block("pending").get("timestamp"))

    def set_next_timestamp(self, timestamp: int) -> None:
        self.request("evm_setNextBlockTimestamp", [timestamp])

    def mine(self, count: int = 1, interval: int | None = None) -> None:
        self.request("hardhat_mine", [hex(count)] if interval is None else [hex(count), hex(interval)])

    def snapshot(self) -> int:
        return self._number("evm_snapshot")

    def revert(self, snapshot: int) -> bool:
        return bool(self.request("evm_revert", [hex(snapshot)]))

    def edit(self, change: AccountEdit) -> None:
        address = _hex(change.address)
        if change.balance is not None:
            self.request("hardhat_setBalance", [address, hex(change.balance)])
        if change.nonce is not None:
            self.request("hardhat_setNonce", [address, hex(change.nonce)])
        if change.code is not None:
            self.request("hardhat_setCode", [address, _hex(change.code)])
        for slot, value in change.slots or ():
            self.request("hardhat_setStorageAt", [address, _hex(slot), _hex(value)])

    def impersonate(self, address: bytes, is_on: bool) -> None:
        name = "hardhat_impersonateAccount" if is_on else "hardhat_stopImpersonatingAccount"
        self.request(name, [_hex(address)])

    def set_automine(self, is_on: bool) -> None:
        self.request("evm_setAutomine", [is_on])

    def close(self) -> None:
        """Close the connections."""
        self._rpc.close()


def _call_object(spec: CallSpec) -> dict[str, Any]:
    fields = {"from": _hex(spec.sender), "data": _hex(spec.data), "value": hex(spec.value)}
    if spec.to is not None:
        fields["to"] = _hex(spec.to)
    if spec.gas is not None:
        fields["gas"] = hex(spec.gas)
    if spec.nonce is not None:
        fields["nonce"] = hex(spec.nonce)
    return fields


def _revert_data(data: Any) -> bytes:
    if isinstance(data, Mapping):
        data = data.get("data") or data.get("result")
    return _bytes(data) if isinstance(data, str) and data.startswith("0x") else b""


def _hex(value: bytes) -> str:
    return "0x" + value.hex()


def _bytes(text: Any) -> bytes:
    digits = str(text or "0x")[2:]
    return bytes.fromhex(digits if len(digits) % 2 == 0 else "0" + digits)


def _as_json(value: object) -> object:
    if isinstance(value, bytes | bytearray):
        return _hex(bytes(value))
    if isinstance(value, int):
        return hex(value)
    if isinstance(value, str):
        return str(value)
    address = getattr(value, "address", None)
    if address is not None:
        return address
    raise TypeError(f"{value!r} has no JSON form")
