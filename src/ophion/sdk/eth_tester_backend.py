"""`OphionBackend`: a backend of eth-tester on an embedded chain.

    from eth_tester import EthereumTester
    from ophion.sdk.eth_tester_backend import OphionBackend

    tester = EthereumTester(backend=OphionBackend())

A transaction waits in the pool until eth-tester mines a block, as with py-evm. eth-tester is not a dependency of Ophion
and must be installed separately.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

try:
    from eth_tester.backends.base import BaseChainBackend
    from eth_tester.exceptions import BlockNotFound, TransactionFailed, TransactionNotFound, ValidationError
except ImportError as error:
    raise ImportError("the backend needs eth-tester: pip install eth-tester") from error

from msgspec.structs import replace

from ophion.abi.interface import decode_error
from ophion.errors import OphionError, RpcError
from ophion.native.crypto import PrivateKey
from ophion.primitives.types import ZERO_ADDRESS
from ophion.sdk.chain import Chain
from ophion.sdk.eth_tester_objects import as_block, as_log, as_receipt, as_transaction, wire_request
from ophion.wallet.unsigned_transaction import ACCESS_LIST, DYNAMIC_FEE, LEGACY, UnsignedTransaction

CHAIN_ID = 131_277_322_940_537
"""Chain id of eth-tester."""

_REVERTED_CODE = 3
_BALANCE = 1_000_000
_FIRST_BASE_FEE = 875_000_000
"""Base fee of block 1, the same as in py-evm."""
_DEFAULT_FEE = 10**9
_UNPROTECTED_V = 27
_PROTECTED_V = 35


class _Snapshot:
    """A state of the chain; eth-tester may return to it several times."""

    def __init__(self, id: int) -> None:
        self.id = id


class OphionBackend(BaseChainBackend):
    """The methods that eth-tester calls. Values are plain integers and bytes."""

    def __init__(self, chain: Chain | None = None) -> None:
        """Create a backend on `chain`, by default on a new chain with ten accounts of a million ether each."""
        if chain is None:
            chain = Chain(chain_id=CHAIN_ID, balance=_BALANCE, base_fee=_FIRST_BASE_FEE)
        self.chain = chain
        self.chain.backend.set_automine(False)
        self._genesis = _Snapshot(self.chain.save())

    # --- snapshots and time ---------------------------------------------------------------------

    def take_snapshot(self) -> _Snapshot:
        return _Snapshot(self.chain.save())

    def revert_to_snapshot(self, snapshot: _Snapshot) -> None:
        self.chain.restore(snapshot.id)
        snapshot.id = self.chain.save()

    def reset_to_genesis(self, *args: object, **options: object) -> None:
        self.revert_to_snapshot(self._genesis)

    def time_travel(self, to_timestamp: int) -> int:
        # mine a block one second before the requested time, so that the pending block gets the requested time
        self.chain.time = max(to_timestamp - 1, self.chain.time)
        self.chain.mine()
        return to_timestamp

    def mine_blocks(self, num_blocks: int = 1, coinbase: bytes = ZERO_ADDRESS) -> tuple[bytes, ...]:
        chain = self.chain
        chain.rpc("anvil_setCoinbase", coinbase)
        first = chain.block_number + 1
        chain.mine(num_blocks)
        numbers = range(first, first + num_blocks)
        return tuple(_raw(chain.rpc("eth_getBlockByNumber", hex(number), False)["hash"]) for number in numbers)

    # --- accounts -------------------------------------------------------------------------------

    def get_accounts(self) -> tuple[bytes, ...]:
        return tuple(self.chain.backend.accounts())

    def add_account(self, private_key: bytes) -> None:
        self.chain.node.add_key(private_key)

    # --- chain data -----------------------------------------------------------------------------

    def get_block_by_number(self, block_number: int | str, full_transaction: bool = True) -> dict[str, Any]:
        return self._block(self.chain.rpc("eth_getBlockByNumber", _tag(block_number), True), full_transaction)

    def get_block_by_hash(self, block_hash: bytes, full_transaction: bool = True) -> dict[str, Any]:
        return self._block(self.chain.rpc("eth_getBlockByHash", block_hash, True), full_transaction)

    def _block(self, found: Mapping[str, Any] | None, full_transaction: bool) -> dict[str, Any]:
        if found is None:
            raise BlockNotFound("there is no such block")
        return as_block(found, full_transaction)

    def get_transaction_by_hash(self, transaction_hash: bytes) -> dict[str, Any]:
        found = self.chain.rpc("eth_getTransactionByHash", transaction_hash)
        if found is None:
            raise TransactionNotFound(f"there is no transaction 0x{transaction_hash.hex()}")
        return as_transaction(found)

    def get_transaction_receipt(self, transaction_hash: bytes) -> dict[str, Any]:
        chain = self.chain
        found = chain.rpc("eth_getTransactionReceipt", transaction_hash)
        if found is not None:
            return as_receipt(found, is_pending=False)
        if chain.rpc("eth_getTransactionByHash", transaction_hash) is None:
            raise TransactionNotFound(f"there is no transaction 0x{transaction_hash.hex()}")
        # eth-tester expects a receipt for a pending transaction, so mine the transaction in a snapshot and revert
        with chain.snapshot():
            chain.mine()
            return as_receipt(chain.rpc("eth_getTransactionReceipt", transaction_hash), is_pending=True)

    def get_logs(self, **criteria: Any) -> list[dict[str, Any]]:
        """Return the logs that match a filter object of JSON-RPC."""
        return [as_log(one, is_pending=False) for one in self.chain.rpc("eth_getLogs", criteria)]

    def get_fee_history(
        self, block_count: int = 1, newest_block: int | str = "latest", reward_percentiles: Sequence[int] = ()
    ) -> dict[str, Any]:
        if not 1 <= block_count <= 1024:
            raise ValidationError("block_count must be between 1 and 1024")
        newest = "latest" if newest_block == "pending" else newest_block
        found = self.chain.rpc("eth_feeHistory", hex(block_count), _tag(newest), list(reward_percentiles))
        return {
            "oldest_block": int(found["oldestBlock"], 16),
            "base_fee_per_gas": [int(one, 16) for one in found["baseFeePerGas"]],
            "gas_used_ratio": found["gasUsedRatio"],
            "reward": [[int(one, 16) for one in block] for block in found.get("reward") or ()],
        }

    # --- state ----------------------------------------------------------------------------------

    def get_nonce(self, account: bytes, block_number: int | str = "latest") -> int:
        return int(self.chain.rpc("eth_getTransactionCount", account, _tag(block_number)), 16)

    def get_balance(self, account: bytes, block_number: int | str = "latest") -> int:
        return int(self.chain.rpc("eth_getBalance", account, _tag(block_number)), 16)

    def get_code(self, account: bytes, block_number: int | str = "latest") -> bytes:
        return _raw(self.chain.rpc("eth_getCode", account, _tag(block_number)))

    def get_storage(self, account: bytes, slot: int, block_number: int | str = "latest") -> int:
        return int(self.chain.rpc("eth_getStorageAt", account, hex(slot), _tag(block_number)), 16)

    def get_base_fee(self, block_number: int | str = "latest") -> int:
        found = self.chain.rpc("eth_getBlockByNumber", _tag(block_number), False)
        return int(found["baseFeePerGas"], 16)

    # --- transactions ---------------------------------------------------------------------------

    def send_transaction(self, transaction: Mapping[str, Any]) -> bytes:
        secret = self.chain.backend.private_key(transaction["from"])
        if secret is None:
            raise ValidationError('No valid "from" key was provided in the transaction.')
        return self.send_raw_transaction(self._unsigned(transaction).signed_by(PrivateKey(secret)))

    def send_signed_transaction(self, transaction: Mapping[str, Any], block_number: int | str = "latest") -> bytes:
        unsigned = self._unsigned(transaction)
        r, s = (int(transaction[name]).to_bytes(32, "big") for name in ("r", "s"))
        v = int(transaction["v"])
        if unsigned.type == LEGACY and v >= _PROTECTED_V:
            unsigned = replace(unsigned, chain_id=(v - _PROTECTED_V) // 2)
        parity = v if v < 2 else (v - _UNPROTECTED_V if v < _PROTECTED_V else (v - _PROTECTED_V) % 2)
        return self.send_raw_transaction(unsigned.with_signature(r + s + bytes([parity])))

    def _unsigned(self, fields: Mapping[str, Any]) -> UnsignedTransaction:
        """Return the unsigned transaction. Missing fields get the defaults of py-evm."""
        fee, tip = fields.get("max_fee_per_gas"), fields.get("max_priority_fee_per_gas")
        price = fields.get("gas_price")
        if price is None and fee is None and tip is None:
            fee = tip = _DEFAULT_FEE
        if tip is not None and fee is None:
            fee = tip + 2 * self.get_base_fee()
        access_list = fields.get("access_list") or ()
        kind = DYNAMIC_FEE if price is None else ACCESS_LIST if "access_list" in fields else LEGACY
        nonce = fields.get("nonce")
        return UnsignedTransaction(
            type=kind,
            # eth-tester accepts no chain id in legacy signatures
            chain_id=None if kind == LEGACY else self.chain.chain_id,
            nonce=self.get_nonce(fields["from"]) if nonce is None else nonce,
            gas=fields.get("gas") or self._gas_limit(),
            to=fields.get("to") or None,
            value=fields.get("value") or 0,
            input=fields.get("data") or b"",
            gas_price=price or 0,
            max_fee_per_gas=fee or 0,
            max_priority_fee_per_gas=tip or 0,
            access_list=[(address, [slot.to_bytes(32, "big") for slot in slots]) for address, slots in access_list],
        )

    def send_raw_transaction(self, raw_transaction: bytes) -> bytes:
        try:
            return _raw(self.chain.rpc("eth_sendRawTransaction", raw_transaction))
        except RpcError as error:
            raise ValidationError(error.message) from error

    def _gas_limit(self) -> int:
        return int(self.chain.rpc("eth_getBlockByNumber", "latest", False)["gasLimit"], 16)

    def estimate_gas(self, transaction: Mapping[str, Any], block_number: int | str = "latest") -> int:
        request = {name: value for name, value in wire_request(transaction).items() if name != "gas"}
        return int(self._call_with_request("eth_estimateGas", request, block_number), 16)

    def call(self, transaction: Mapping[str, Any], block_number: int | str = "latest") -> bytes:
        return _raw(self._call_with_request("eth_call", wire_request(transaction), block_number))

    def _call_with_request(self, method: str, request: Mapping[str, Any], block_number: int | str) -> str:
        try:
            return str(self.chain.rpc(method, request, _tag(block_number)))
        except RpcError as error:
            data = error.data
            if error.code == _REVERTED_CODE and isinstance(data, str):
                raise TransactionFailed(str(decode_error(_raw(data)))) from error
            raise TransactionFailed(error.message) from error
        except OphionError as error:
            raise TransactionFailed(str(error)) from error


def _raw(text: str) -> bytes:
    return bytes.fromhex(text[2:])


def _tag(block: int | str) -> str:
    return hex(block) if isinstance(block, int) else block
