"""Artifacts of Hardhat, Foundry and solc are found by code, creation code and error. The index names bad files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ophion.abi.interface import Abi
from ophion.sdk.execution_log.contract_index import ArtifactsError, ContractIndex, load_index

ERROR = {
    "type": "error",
    "name": "TooFew",
    "inputs": [{"name": "available", "type": "uint256"}, {"name": "needed", "type": "uint256"}],
}
FUNCTION = {"type": "function", "name": "take", "inputs": [{"name": "amount", "type": "uint256"}], "outputs": []}
ABI = [ERROR, FUNCTION]
RUNTIME, CREATION = "6001600055" + "00" * 32, "600a600c600039600a6000f3"
OUTPUT = next(iter(Abi(ABI).errors)) + (1).to_bytes(32, "big") + (5).to_bytes(32, "big")
IMMUTABLES = {"7": [{"start": 5, "length": 32}]}
SOURCE = "contract Shop {\n    function take(uint amount) external {}\n}\n"


def written(folder: Path, name: str, document: Any) -> ContractIndex:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))
    return load_index(folder)


def hardhat(folder: Path) -> ContractIndex:
    document = {"contractName": "Shop", "abi": ABI, "bytecode": "0x" + CREATION, "deployedBytecode": "0x" + RUNTIME}
    info = {
        "input": {"sources": {"shop.sol": {"content": SOURCE}}},
        "output": {
            "sources": {"shop.sol": {"id": 0}},
            "contracts": {"shop.sol": {"Shop": {"abi": ABI, "evm": evm()}}},
        },
    }
    written(folder, "build-info/1.json", info)
    return written(folder, "contracts/shop.sol/Shop.json", document)


def evm() -> dict[str, Any]:
    deployed = {"object": RUNTIME, "sourceMap": "0:60:0:-;20:5", "immutableReferences": IMMUTABLES}
    return {"bytecode": {"object": CREATION}, "deployedBytecode": deployed}


def foundry(folder: Path) -> ContractIndex:
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "shop.sol").write_text(SOURCE)
    metadata = {"settings": {"compilationTarget": {"src/shop.sol": "Shop"}}}
    return written(folder, "out/shop.sol/Shop.json", {"abi": ABI, **evm(), "metadata": metadata, "id": 0})


def standard_json(folder: Path) -> ContractIndex:
    (folder / "shop.sol").parent.mkdir(parents=True, exist_ok=True)
    (folder / "shop.sol").write_text(SOURCE)
    contracts = {"shop.sol": {"Shop": {"abi": ABI, "evm": evm()}}}
    return written(folder, "out.json", {"contracts": contracts, "sources": {"shop.sol": {"id": 0}}})


@pytest.mark.parametrize("project", [hardhat, foundry, standard_json])
def test_contracts_are_found_by_their_code(tmp_path: Path, project: Any) -> None:
    index = project(tmp_path / "project")
    deployed = bytes.fromhex(RUNTIME)[:5] + bytes(range(32))
    found = index.deployed(deployed)
    assert found is not None
    assert found.name == "Shop"
    assert index.deployed(b"\x60\x02" + deployed[2:]) is None
    created = index.created(bytes.fromhex(CREATION) + bytes(32))
    assert created is not None
    assert created.name == "Shop"
    assert index.reason(OUTPUT) == "TooFew(available=1, needed=5)"
    assert index.reason(b"\x01\x02\x03\x04") is None
    line = found.line_at(2)
    assert line is not None
    assert line.line == 2
    assert line.path.endswith("shop.sol")


def test_combined_json_of_solc(tmp_path: Path) -> None:
    one = {"abi": ABI, "bin": CREATION, "bin-runtime": RUNTIME, "srcmap-runtime": "0:5:0:-"}
    index = written(tmp_path, "combined.json", {"contracts": {"shop.sol:Shop": one}, "sourceList": ["shop.sol"]})
    found = index.deployed(bytes.fromhex(RUNTIME))
    assert found is not None
    assert found.name == "Shop"
    assert found.line_at(0) is None, "the source is not there"


def test_other_json_is_ignored(tmp_path: Path) -> None:
    assert written(tmp_path, "package.json", {"name": "shop"}).count == 0


def test_a_bad_artifact_is_named(tmp_path: Path) -> None:
    (tmp_path / "Shop.json").write_text("{")
    with pytest.raises(ArtifactsError, match=r"Shop\.json is not JSON"):
        load_index(tmp_path)
    with pytest.raises(ArtifactsError, match=r"Shop\.json is not an artifact of Hardhat, Foundry or solc"):
        written(tmp_path, "Shop.json", {"abi": [3], "bytecode": "0x"})
    for inputs, reason in (([{"type": "uint7"}], "'uint7' is not an ABI type"), (5, "a list of objects, not 5")):
        for kind in ("function", "event", "error"):
            with pytest.raises(ArtifactsError, match=reason):
                written(tmp_path, "Shop.json", {"abi": [{"type": kind, "name": "f", "inputs": inputs}]})
    with pytest.raises(ArtifactsError, match="is not a folder"):
        load_index(tmp_path / "missing")
