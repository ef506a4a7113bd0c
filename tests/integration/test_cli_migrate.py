"""Tests `ophion migrate` as a process, on databases in the layout of other clients."""

from __future__ import annotations

import json
import random
import signal
import subprocess
from pathlib import Path

import pytest

from ophion.cli.main import main
from ophion.testing.besu_database import BONSAI, read_chain, snapshot, write_besu_database
from tests.conftest import DATA
from tests.integration.command import OPHION, environment, ophion

pytest.importorskip("rocksdict", reason="the extra ophion[migrate] is not installed")
CHAIN = DATA / "chains" / "besu-qbft-london-at-30"
GENESIS = f"--genesis-file={CHAIN / 'genesis.json'}"
HEAD = [header for header, _ in read_chain(CHAIN)][-1]
EQUAL = f"head {HEAD.number} 0x{HEAD.hash.hex()} equals"
KEY = "0x8f2a55949038a9610f50fb23b5883af3b4ecb3c3bb792cbcefbd1542c692be63"
"""A public test key."""


@pytest.fixture
def besu(tmp_path: Path) -> Path:
    """Return a data directory of Besu with its small files."""
    path = tmp_path / "besu"
    write_besu_database(path, CHAIN, metadata={"v2": {"format": "BONSAI", "version": 3}}, families=BONSAI)
    (path / "key").write_text(KEY)
    (path / "static-nodes.json").write_text(json.dumps([f"enode://{'ab' * 64}@127.0.0.1:30303"]))
    (path / "permissions_config.toml").write_text(
        'accounts-allowlist = ["0xfe3b557e8fb62b89f4916b721be55ceb828dbd73"]\n'
    )
    (path / "config.toml").write_text('data-path = "/opt/besu"\nsync-min-peers = 2\np2p-port = 30304\nnonsense = 1\n')
    return path


def test_besu_is_migrated_with_its_files(besu: Path, tmp_path: Path) -> None:
    data, before = tmp_path / "data", snapshot(besu)
    done = ophion("migrate", f"--from-besu={besu}", f"--data-path={data}", GENESIS).succeeded()
    assert done.out.endswith(f"{EQUAL} Besu's\n")
    assert snapshot(besu) == before
    assert (data / "key").read_text() == KEY
    assert (data / "key").stat().st_mode & 0o777 == 0o600
    assert (data / "static-nodes.json").exists()
    assert (data / "permissions_config.toml").read_bytes() == (besu / "permissions_config.toml").read_bytes()
    assert f"\n  data-path: set to {data}\n" in done.out
    assert "\n  nonsense: unknown, commented out\n" in done.out
    assert "never run the old and the new node at the same time" in done.out
    export = tmp_path / "out.rlp"
    ophion("blocks", "export", f"--to={export}", f"--data-path={data}").succeeded()
    assert export.read_bytes() == (CHAIN / "blocks.rlp").read_bytes()
    again = ophion("migrate", f"--from-besu={besu}", f"--data-path={data}", GENESIS).succeeded()
    assert "Imported 0 blocks" in again.out
    assert "key: taken over already" in again.out


def test_a_killed_migration_continues(besu: Path, tmp_path: Path) -> None:
    data, before = tmp_path / "data", snapshot(besu)
    draw = random.Random(32)
    command = [*OPHION, "migrate", f"--from-besu={besu}", f"--data-path={data}", GENESIS]
    for _ in range(4):
        process = subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(draw.uniform(0.1, 0.6))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
    assert EQUAL in ophion(*command[len(OPHION) :]).succeeded().out
    assert snapshot(besu) == before
    ophion("storage", "check", f"--data-path={data}").succeeded()


def test_an_export_file_is_migrated(tmp_path: Path) -> None:
    file, data = CHAIN / "blocks.rlp", tmp_path / "data"
    done = ophion("migrate", f"--from-rlp={file}", f"--data-path={data}", GENESIS).succeeded()
    assert done.out.endswith(f"{EQUAL} the file's\n")


def test_what_cannot_be_migrated_is_one_error(besu: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def fails(message: str, *arguments: str) -> None:
        assert main(["migrate", *arguments]) == 1
        assert message in capsys.readouterr().err

    data, source = f"--data-path={tmp_path / 'data'}", f"--from-besu={besu}"
    fails("Give one source: --from-besu=DIR", data, GENESIS)
    fails("--from-config belongs to --from-besu", "--rpc=http://127.0.0.1:1", "--from-config=a", data, GENESIS)
    fails("--from-geth-ancient belongs to --from-geth", source, "--from-geth-ancient=a", data, GENESIS)
    fails("There is no directory", f"--from-besu={tmp_path / 'nowhere'}", data, GENESIS)
    fails("lies in the old data", source, f"--data-path={besu / 'new'}", GENESIS)
    fails("lies in the old data", source, f"--data-path={besu}", GENESIS)
    (tmp_path / "mistake.toml").write_text("a = [")
    fails("Unable to read the Besu configuration", f"--from-config={tmp_path / 'mistake.toml'}", source, data, GENESIS)
    assert not (tmp_path / "data").exists(), "the mistake is reported before the import"
    other = f"--genesis-file={DATA / 'chains' / 'besu-clique' / 'genesis.json'}"
    refused = ophion("migrate", source, data, other).failed("The genesis file does not belong to this chain")
    assert "Stopped at block" not in refused.err


def test_a_chain_that_breaks_a_rule_is_refused(tmp_path: Path) -> None:
    chain = DATA / "chains" / "goquorum-qbft-gas-limit-jump"
    write_besu_database(tmp_path / "besu", chain)
    genesis = f"--genesis-file={chain / 'genesis.json'}"
    source = f"--from-besu={tmp_path / 'besu'}"
    ophion("migrate", source, f"--data-path={tmp_path / 'data'}", genesis).failed(
        "Stopped at block 0", "gas limit", '"isQuorum": true'
    )
    values = json.loads((chain / "genesis.json").read_text())
    values["config"]["isQuorum"] = True
    (tmp_path / "goquorum.json").write_text(json.dumps(values))
    marked = f"--genesis-file={tmp_path / 'goquorum.json'}"
    ophion("migrate", source, f"--data-path={tmp_path / 'other'}", marked).succeeded()
