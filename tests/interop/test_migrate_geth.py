"""`ophion migrate` reads data directories of geth and a running geth. Needs GETH=path/to/geth (1.13, the last with
Clique).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ophion.errors import CommandError
from ophion.runtime.blocking_json_rpc import JsonRpcClient
from ophion.testing.besu_database import read_chain, snapshot
from ophion.testing.node_process import NodeProcess
from ophion.testing.ports import free_ports
from ophion.testing.wait_for import wait_for
from tests.conftest import DATA
from tests.integration.command import ophion

GETH = os.environ.get("GETH", "")
LIMIT_S = 60.0
CHAIN = DATA / "chains" / "geth-clique"
GENESIS = f"--genesis-file={CHAIN / 'genesis.json'}"
HEAD = [header for header, _ in read_chain(CHAIN)][-1]
EQUAL = f"head {HEAD.number} 0x{HEAD.hash.hex()} equals geth's\n"

pytestmark = pytest.mark.skipif(not shutil.which(GETH), reason="GETH does not name a geth binary")
pytest.importorskip("cramjam", reason="the extra ophion[migrate] is not installed")


@pytest.fixture(params=["leveldb", "pebble"])
def datadir(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a data directory of geth with the chain."""
    genesis = json.loads((CHAIN / "genesis.json").read_text())
    genesis["config"]["clique"] = {"period": 1, "epoch": 50}
    (tmp_path / "genesis.json").write_text(json.dumps(genesis))
    path = tmp_path / "geth"
    base = [GETH, "--datadir", str(path), "--db.engine", request.param, "--gcmode", "archive"]
    subprocess.run([*base, "init", str(tmp_path / "genesis.json")], check=True, capture_output=True)
    subprocess.run([*base, "import", str(CHAIN / "blocks.rlp")], check=True, capture_output=True)
    return path


def test_geth_is_migrated_from_its_directory_and_while_it_runs(datadir: Path, tmp_path: Path) -> None:
    data, before = tmp_path / "data", snapshot(datadir)
    assert ophion("migrate", f"--from-geth={datadir}", f"--data-path={data}", GENESIS).succeeded().out.endswith(EQUAL)
    assert snapshot(datadir) == before
    port, engine = free_ports(2)
    quiet = ("--nodiscover", "--maxpeers=0", "--port=0", "--ipcdisable", f"--authrpc.port={engine}", "--networkid=1337")
    served = ("--http", f"--http.port={port}", "--http.api=eth,net,web3", "--gcmode=archive")
    url = f"http://127.0.0.1:{port}"
    with (tmp_path / "geth.log").open("wb") as log:
        process = subprocess.Popen([GETH, "--datadir", str(datadir), *quiet, *served], stdout=log, stderr=log)
        try:
            wait_for(lambda: _answers(url), LIMIT_S, "geth")
            ophion("migrate", f"--from-geth={datadir}", f"--data-path={tmp_path / 'b'}", GENESIS).failed(
                "geth is using its database"
            )
            done = ophion("migrate", f"--rpc={url}", f"--data-path={tmp_path / 'c'}", GENESIS).succeeded()
            assert done.out.endswith(EQUAL)
            with NodeProcess(data, GENESIS) as node:
                new = f"--new=http://127.0.0.1:{node.ports['json-rpc']}"
                report = ophion("migrate", "--compare", f"--old={url}", new, "--seed=1").succeeded()
            assert "1,000 answers compared up to block 12, 0 differ" in report.out
        finally:
            process.terminate()
            process.wait(LIMIT_S)


def _answers(url: str) -> bool:
    try:
        return bool(JsonRpcClient(url).call("eth_blockNumber"))
    except CommandError:
        return False
