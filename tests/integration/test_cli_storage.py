"""Backups of running nodes and their restoration, compaction, and the errors of these commands."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from pathlib import Path

from ophion.node.datadir import DataDirectory
from ophion.testing.node_process import MINING, NodeProcess
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.integration.command import OPHION, environment, ophion

RICH = DEV_KEYS[1]


class Transfers:
    """Sends transfers to a node during the `with` block."""

    def __init__(self, node: NodeProcess, first: int = 0) -> None:
        self._node = node
        self.sent = first
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._ends.is_set():
            self._node.receipt(self._node.send(legacy_transaction(RICH, self.sent, to=os.urandom(20), value=1)))
            self.sent += 1

    def __enter__(self) -> Transfers:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()


def test_a_backup_under_load_is_restored(tmp_path: Path) -> None:
    data, copy = tmp_path / "data", tmp_path / "backups" / "monday"
    with NodeProcess(data, *MINING) as node:
        with Transfers(node) as transfers:
            while transfers.sent < 20:
                time.sleep(0.01)
            before = transfers.sent
            done = ophion("storage", "backup", f"--data-path={data}", f"--to={copy}").succeeded()
            after = transfers.sent
            assert "accounts" in ophion("storage", "usage", f"--data-path={data}").succeeded().out
        assert " and found no damage." in done.out
        assert node.stop() == 0
    number = int(done.out.partition("up to block ")[2].split()[0])
    assert before - 1 <= number <= after + 1
    assert f"No damage found up to block {number} " in ophion("storage", "check", f"--data-path={copy}").out
    with NodeProcess(copy, *MINING) as restored:
        assert restored.height == number
        assert int(restored.rpc("eth_getTransactionCount", "0x" + RICH.address.hex(), "latest"), 16) == number
        restored.receipt(restored.send(legacy_transaction(RICH, number)))


def test_a_backup_that_is_killed_leaves_none(tmp_path: Path) -> None:
    data, copy = tmp_path / "data", tmp_path / "copy"
    with NodeProcess(data, *MINING) as node:
        for nonce in range(3):
            node.receipt(node.send(legacy_transaction(RICH, nonce)))
        command = [*OPHION, "storage", "backup", f"--data-path={data}", f"--to={copy}", "--max-rate=1"]
        for end in (signal.SIGKILL, signal.SIGINT):
            running = subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            deadline = time.monotonic() + 120
            while not (tmp_path / "copy.partial").exists() and running.poll() is None and time.monotonic() < deadline:
                time.sleep(0.001)
            running.send_signal(end)
            _, errors = running.communicate(timeout=120)
            assert b"Traceback" not in errors
            assert running.returncode == 0 or not copy.exists()
            if copy.exists():  # the backup ended before the signal arrived
                return
        ophion(*command[len(OPHION) :]).succeeded()
        node.receipt(node.send(legacy_transaction(RICH, 3)))
    ophion("storage", "check", f"--data-path={copy}").succeeded()
    assert not (tmp_path / "copy.partial").exists()


def test_compaction_needs_the_data_for_itself(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with NodeProcess(data, *MINING) as node:
        for nonce in range(30):
            node.receipt(node.send(legacy_transaction(RICH, nonce)))
        ophion("storage", "compact", f"--data-path={data}").failed("is in use by process")
        assert node.stop() == 0
    size = (data / "database" / "data.mdb").stat().st_size
    assert "no damage found up to block 30." in ophion("storage", "compact", f"--data-path={data}").succeeded().out
    assert (data / "database" / "data.mdb").stat().st_size < size
    with NodeProcess(data, *MINING) as node:
        assert node.height == 30
        node.receipt(node.send(legacy_transaction(RICH, 30)))


def test_errors_of_backup_and_compaction_are_one_line(tmp_path: Path) -> None:
    ophion("storage", "backup", f"--data-path={tmp_path}", f"--to={tmp_path / 'x'}").failed("There is no chain in")
    ophion("storage", "compact", f"--data-path={tmp_path}").failed("There is no chain in")
    ophion("storage", "backup", f"--data-path={tmp_path}").failed("Missing required option: '--to=DIRECTORY'")


def test_a_damaged_payload_is_found_and_can_be_forgotten(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with NodeProcess(data, *MINING) as node:
        assert node.stop() == 0
    with DataDirectory.open(data) as directory:
        directory.store().write_rows([("payloads", b"\x07" * 32, b"\xff" * 100)])
    line = f"private payload 0x{'07' * 32}: what is stored is not what was sealed; `ophion privacy rebuild`"
    found = ophion("storage", "check", f"--data-path={data}")
    assert found.code == 1
    assert line in found.out
    ophion("storage", "backup", f"--data-path={data}", f"--to={tmp_path / 'copy'}").failed(line)
    done = ophion("privacy", "rebuild", f"--data-path={data}").succeeded()
    assert "Payloads that were damaged are forgotten too: 1." in done.out
    ophion("storage", "check", f"--data-path={data}").succeeded()
