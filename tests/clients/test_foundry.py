"""Runs cast and forge, unmodified, against `ophion dev`.

`CAST` and `FORGE` name the programs, or the programs are on the PATH; npm has them as `@foundry-rs/cast` and
`@foundry-rs/forge`. The compiler comes from examples/hardhat-project.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ophion.testing.node_process import NodeProcess
from tests.conftest import ROOT
from tests.integration.test_node_examples import javascript

FIRST = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
KEY = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"  # this key is a published test key
OTHER = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8"
OTHER_KEY = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d"  # this key is a published test key
TO = "0x00000000000000000000000000000000000000d0"

SCRIPT = """// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.24;

import {Counter} from "../src/Counter.sol";

interface Vm {
    function startBroadcast() external;
    function stopBroadcast() external;
}

contract Deploy {
    Vm constant vm = Vm(address(uint160(uint256(keccak256("hevm cheat code")))));

    function run() external {
        vm.startBroadcast();
        Counter counter = new Counter(40);
        counter.add(2);
        vm.stopBroadcast();
    }
}
"""


def program(name: str) -> str:
    found = os.environ.get(name.upper()) or shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not here: npm package @foundry-rs/{name}, named by {name.upper()} or on the PATH")
    return found


@pytest.fixture
def node(tmp_path: Path) -> Iterator[NodeProcess]:
    options = ("--rpc-ws-enabled=false", "--graphql-http-enabled=false", "--logging=WARN")
    with NodeProcess(tmp_path / "data", *options, command=("dev",)) as started:
        yield started


def url_of(node: NodeProcess) -> str:
    return f"http://127.0.0.1:{node.ports['json-rpc']}"


def run(node: NodeProcess, command: list[str], folder: Path, **variables: str) -> str:
    ran = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
        env={
            **os.environ,
            "FOUNDRY_DISABLE_NIGHTLY_WARNING": "1",
            "NO_PROXY": "*",
            "ETH_RPC_URL": url_of(node),
            **variables,
        },
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project with the counter contract, compiled by the npm package of the compiler."""
    solc = javascript("hardhat-project")
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    (folder / "script").mkdir()
    shutil.copy(ROOT / "examples/python-client/Counter.sol", folder / "src")
    (folder / "script" / "Deploy.s.sol").write_text(SCRIPT)
    compiler = folder / "solc"
    source = Path(__file__).with_name("solc.cjs").read_text()
    compiler.write_text(source.replace("process.env.SOLC_FOLDER", json.dumps(str(solc))))
    compiler.chmod(0o755)
    (folder / "foundry.toml").write_text(
        f'[profile.default]\nsolc = "{compiler}"\noffline = true\nevm_version = "prague"\n'
    )
    return folder


def test_cast_sends_for_an_unlocked_account(node: NodeProcess, tmp_path: Path) -> None:
    cast = program("cast")
    sent = run(node, [cast, "send", "--unlocked", "--from", FIRST, TO, "--value", "1", "--json"], tmp_path)
    receipt = json.loads(sent)
    assert (receipt["status"], receipt["from"].lower()) == ("0x1", FIRST)
    assert run(node, [cast, "balance", TO], tmp_path).strip() == "1"
    for kind in ("--legacy", "--access-list"):
        run(node, [cast, "send", "--private-key", KEY, TO, "--value", "1", kind], tmp_path)
    assert run(node, [cast, "nonce", FIRST], tmp_path).strip() == "3"


def test_cast_sends_blobs_and_authorizations(node: NodeProcess, tmp_path: Path) -> None:
    cast = program("cast")
    blob = tmp_path / "blob"
    blob.write_bytes(b"ophion" * 100)
    mine = ["--private-key", KEY, "--json"]
    sent = run(node, [cast, "send", TO, *mine, "--blob", "--path", str(blob)], tmp_path)
    assert (json.loads(sent)["type"], json.loads(sent)["blobGasUsed"]) == ("0x3", "0x20000")
    permit = run(node, [cast, "wallet", "sign-auth", TO, "--private-key", OTHER_KEY], tmp_path).strip()
    receipt = json.loads(run(node, [cast, "send", TO, *mine, "--auth", permit], tmp_path))
    assert (receipt["type"], receipt["status"]) == ("0x4", "0x1")
    assert run(node, [cast, "code", OTHER], tmp_path).strip() == "0xef0100" + TO[2:]


def test_forge_creates_a_contract(node: NodeProcess, project: Path) -> None:
    forge = program("forge")
    command = [forge, "create", "src/Counter.sol:Counter", "--unlocked", "--from", FIRST, "--broadcast", "--json"]
    created = run(node, [*command, "--constructor-args", "40"], project)
    address = json.loads(created[created.index("{") :])["deployedTo"]
    assert int(node.rpc("eth_call", {"to": address, "data": "0x06661abd"}, "latest"), 16) == 40


def test_forge_broadcasts_a_script(node: NodeProcess, project: Path) -> None:
    forge = program("forge")
    command = [forge, "script", "script/Deploy.s.sol:Deploy", "--broadcast", "--private-key", KEY, "--slow"]
    # forge scripts ignore the environment variable with the URL
    shown = run(node, [*command, "--rpc-url", url_of(node)], project)
    assert "ONCHAIN EXECUTION COMPLETE & SUCCESSFUL" in shown
    assert int(node.rpc("eth_getTransactionCount", FIRST, "latest"), 16) == 2
    address = node.rpc("eth_getTransactionReceipt", node.rpc("eth_getBlockByNumber", "0x1", False)["transactions"][0])
    assert int(node.rpc("eth_call", {"to": address["contractAddress"], "data": "0x06661abd"}, "latest"), 16) == 42
