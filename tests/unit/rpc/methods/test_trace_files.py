from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from ophion.rpc.methods import trace_files
from ophion.rpc.schema.registry import HTTP
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.unit.rpc.interface import Interface

INIT_CODE = bytes.fromhex("602a60005260206000f3")
"""Init code that writes a word to memory and returns it as the code."""


@pytest.fixture
def dev(dev: Interface, tmp_path: Path) -> Interface:
    """Open the development chain with a data path."""
    dev.context = replace(dev.context, data_path=str(tmp_path))
    dev.dispatcher = dev.dispatcher_for(HTTP)
    return dev


def mined(dev: Interface) -> tuple[str, list[str]]:
    raws = [
        legacy_transaction(DEV_KEYS[0], 0, to=None, data=INIT_CODE, gas=100_000),
        legacy_transaction(DEV_KEYS[1], 0, to=DEV_KEYS[2].address, value=1),
    ]
    _, hashes = dev.run(dev.node.mine(*raws))
    return dev.ask("eth_getBlockByNumber", "latest")["hash"], ["0x" + one.hex() for one in hashes]


def test_each_transaction_has_a_file_with_a_line_for_each_instruction(dev: Interface) -> None:
    block, hashes = mined(dev)
    first, second = dev.ask("debug_standardTraceBlockToFile", block)
    assert Path(first).name == f"block_{block[:10]}-0-{hashes[0][:10]}-0"
    *rows, summary = map(json.loads, Path(first).read_text().splitlines())
    assert [row["opName"] for row in rows] == ["PUSH1", "PUSH1", "MSTORE", "PUSH1", "PUSH1", "RETURN"]
    assert [row["op"] for row in rows] == [0x60, 0x60, 0x52, 0x60, 0x60, 0xF3]
    assert (rows[2]["stack"], rows[3]["memSize"], rows[0]["depth"]) == (["0x2a", "0x0"], 32, 1)
    assert summary["output"] == f"{42:064x}"
    assert int(summary["gasUsed"], 16) > 53_000
    assert json.loads(Path(second).read_text().splitlines()[-1]) == {"output": "", "gasUsed": "0x5208"}


def test_one_transaction_without_memory(dev: Interface) -> None:
    block, hashes = mined(dev)
    (path,) = dev.ask("debug_standardTraceBlockToFile", block, {"txHash": hashes[0], "disableMemory": True})
    row = json.loads(Path(path).read_text().splitlines()[3])
    assert "memory" not in row
    (again,) = dev.ask("debug_standardTraceBlockToFile", block, {"txHash": hashes[0]})
    assert again == path.removesuffix("0") + "1"


def test_unknown_blocks_and_a_full_folder_are_errors(dev: Interface, monkeypatch: pytest.MonkeyPatch) -> None:
    block, _ = mined(dev)
    for name in ("debug_standardTraceBlockToFile", "debug_standardTraceBadBlockToFile"):
        assert dev.error(name, "0x" + "ab" * 32) == (-32000, "Block not found")
    monkeypatch.setattr(trace_files, "MAX_FOLDER_BYTES", 10)
    code, message = dev.error("debug_standardTraceBlockToFile", block)
    assert code == -32000
    assert message.endswith("bytes of traces. Delete some of them.")
