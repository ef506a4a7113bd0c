"""Runner for GenesisTests: genesis documents and the RLP of their genesis blocks."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from ophion.chain.chain import Chain
from ophion.chainspec.genesis import parse_genesis
from ophion.consensus.engine_factory import engine_for
from ophion.errors import OphionError
from ophion.native.store import open_store
from ophion.vectors.outcome import Outcome, outcomes


def run_file(path: Path) -> list[Outcome]:
    """Run a file; return one outcome for each case."""
    return outcomes(path, lambda name, case: [_outcome(str(path), name, case)])


def _outcome(file: str, name: str, case: dict[str, Any]) -> Outcome:
    try:
        got = _block(case).hex()
        expected = str(case["result"])
    except (OphionError, KeyError, TypeError, AttributeError) as error:
        return Outcome(file, name, "", False, f"{type(error).__name__}: {error}")
    return Outcome(file, name, "", got == expected, "" if got == expected else f"expected {expected}, got {got}")


def _block(case: dict[str, Any]) -> bytes:
    """Return the genesis block of a case in the format of 2014: balances are named `wei`, no engine is set."""
    alloc = {
        address: {("balance" if key == "wei" else key): value for key, value in account.items()}
        for address, account in case["alloc"].items()
    }
    timestamp = case["timestamp"] if case["timestamp"] != "0x" else "0x0"
    document = {**case, "alloc": alloc, "timestamp": timestamp, "config": {"ethash": {}}}
    genesis = parse_genesis(json.dumps(document))
    with tempfile.TemporaryDirectory(prefix="ophion-vectors-") as folder:
        store = open_store(Path(folder), durable=False)
        try:
            chain = Chain.open(store, genesis, engine_for(genesis.spec))
            return store.block(chain.genesis.hash) or b""
        finally:
            store.close()
