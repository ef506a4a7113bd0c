"""Runner for BlockchainTests: imports chains into a real database.

The node must import valid blocks and reject invalid blocks. Then head and state must be those of the test.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from ophion.chain.block import decode_block
from ophion.chain.block_import import ImportCore
from ophion.chain.chain import Chain
from ophion.chainspec.genesis import Genesis, GenesisAccount
from ophion.chainspec.spec import ChainSpec
from ophion.consensus.engine_factory import engine_for
from ophion.errors import DecodeError, InvalidBlock, OphionError, UnknownParent
from ophion.native.exceptions import NativeError
from ophion.native.executor import State, genesis_state
from ophion.native.store import Store, open_store
from ophion.primitives.hexcodec import parse_data_lenient, parse_number, strip_prefix
from ophion.primitives.types import ZERO_HASH
from ophion.runtime.clock import ManualClock
from ophion.vectors.networks import network_spec
from ophion.vectors.outcome import Outcome, outcomes

_LATE: Final = 2.0**63
"""A time after all blocks of the tests, so that no block is in the future."""


class _Difference(Exception):
    """Raised when the expected and the actual result differ."""


def run_file(path: Path) -> list[Outcome]:
    """Run a file; return one outcome for each case."""
    return outcomes(path, lambda name, case: [_run_case(str(path), name, case)])


def _run_case(file: str, name: str, case: Any) -> Outcome:
    if not isinstance(case, dict) or "network" not in case:
        return Outcome(file, name, "", False, "the case cannot be run: it has no member 'network'")
    network = str(case["network"])
    try:
        spec = network_spec(network, case.get("config", {}))
        if spec is None:
            return Outcome(file, name, network, None, f"network {network} is not supported")
        with tempfile.TemporaryDirectory(prefix="ophion-vectors-") as folder:
            store = open_store(Path(folder), durable=False)
            try:
                _play(case, spec, store)
            finally:
                store.close()
    except _Difference as difference:
        return Outcome(file, name, network, False, str(difference))
    except (OphionError, NativeError, KeyError, TypeError, ValueError, AttributeError) as error:
        return Outcome(file, name, network, False, f"the case cannot be run: {type(error).__name__}: {error}")
    return Outcome(file, name, network, True)


def _play(case: dict[str, Any], spec: ChainSpec, store: Store) -> None:
    engine = engine_for(spec, verifies_work=case.get("sealEngine") == "Ethash")
    chain = Chain.open(store, _genesis(case, spec), engine)
    _expect("genesis hash", case["genesisBlockHeader"]["hash"], chain.genesis.hash.hex())
    core = ImportCore(chain, ManualClock(wall=_LATE))
    for position, block in enumerate(case["blocks"]):
        expected = next((str(value) for key, value in block.items() if key.startswith("expectException")), "")
        problem = _import(parse_data_lenient(block["rlp"]), chain, core)
        if problem and not expected:
            raise _Difference(f"block {position + 1} of the list: expected a valid block, got {problem}")
        if expected and not problem:
            raise _Difference(f"block {position + 1} of the list: expected {expected}, got a valid block")
    _expect("last block hash", case["lastblockhash"], chain.head.hash.hex())
    if "postStateHash" in case:
        _expect("state root", case["postStateHash"], chain.head.header.state_root.hex())
    else:
        _compare_state(case["postState"], store, chain.head.header.state_root)


def _import(raw: bytes, chain: Chain, core: ImportCore) -> str:
    """Import one block. Returns the reason if the block is rejected, else an empty text."""
    try:
        block = decode_block(raw, chain.engine)
        if core.is_known(block.header.hash):
            return ""
        core.stage(block.header, block.body)
    except (DecodeError, InvalidBlock, UnknownParent) as error:
        return str(error)
    change = core.commit()
    if change is not None:
        chain.advance(change, {})
    return ""


def _genesis(case: dict[str, Any], spec: ChainSpec) -> Genesis:
    header = case["genesisBlockHeader"]
    base_fee = header.get("baseFeePerGas")
    if base_fee is not None:
        spec = replace(spec, initial_base_fee=parse_number(base_fee))
    return Genesis(
        spec=spec,
        difficulty=parse_number(header["difficulty"]),
        gas_limit=parse_number(header["gasLimit"]),
        nonce=parse_data_lenient(header["nonce"], 8),
        timestamp=parse_number(header["timestamp"]),
        extra_data=parse_data_lenient(header["extraData"]),
        mix_hash=parse_data_lenient(header["mixHash"], 32),
        parent_hash=parse_data_lenient(header["parentHash"], 32),
        coinbase=parse_data_lenient(header["coinbase"], 20),
        blob_gas_used=parse_number(header.get("blobGasUsed", "0x0")),
        excess_blob_gas=parse_number(header.get("excessBlobGas", "0x0")),
        parent_beacon_block_root=parse_data_lenient(header.get("parentBeaconBlockRoot", ZERO_HASH.hex()), 32),
        accounts=tuple(_account(address, entry) for address, entry in case["pre"].items()),
    )


def _account(address: str, entry: dict[str, Any]) -> GenesisAccount:
    return GenesisAccount(
        address=parse_data_lenient(address, 20),
        nonce=parse_number(entry["nonce"]),
        balance=parse_number(entry["balance"]),
        code=parse_data_lenient(entry["code"]),
        storage=tuple((_word(slot), _word(value)) for slot, value in entry["storage"].items() if any(_word(value))),
    )


def _word(text: str) -> bytes:
    return bytes.fromhex(strip_prefix(text).rjust(64, "0"))


def _compare_state(expected: dict[str, Any], store: Store, root: bytes) -> None:
    accounts = [_account(address, entry) for address, entry in expected.items()]
    wanted = genesis_state(store, [(a.address, a.nonce, a.balance, a.code, a.storage) for a in accounts]).state_root
    if wanted == root:
        return
    state = store.state(root)
    for account in accounts:
        _compare_account(account, state)
    raise _Difference(f"state root: expected {wanted.hex()}, got {root.hex()}; accounts that should not be there")


def _compare_account(account: GenesisAccount, state: State) -> None:
    name = f"account 0x{account.address.hex()}"
    found = state.account(account.address)
    nonce, balance = found[:2] if found is not None else (0, 0)
    _expect(f"nonce of {name}", str(account.nonce), str(nonce))
    _expect(f"balance of {name}", str(account.balance), str(balance))
    _expect(f"code of {name}", account.code.hex(), state.code(account.address).hex())
    for slot, value in account.storage:
        _expect(f"slot 0x{slot.hex()} of {name}", value.hex(), state.storage(account.address, slot).hex())


def _expect(what: str, expected: str, got: str) -> None:
    if strip_prefix(expected).lower() != got:
        raise _Difference(f"{what}: expected {expected}, got {got}")
