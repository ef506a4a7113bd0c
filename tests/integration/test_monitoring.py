"""A real Prometheus with the configuration of a quickstart reads every node and has all metrics of the dashboard.

`OPHION_PROMETHEUS` names the program if it is not on the PATH.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ophion.quickstart.lock_file import holder
from ophion.testing.node_process import COMMAND
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from ophion.testing.wait_for import wait_for
from tests.integration.command import environment

PROMETHEUS = os.environ.get("OPHION_PROMETHEUS") or shutil.which("prometheus")
NO_PROMETHEUS = pytest.mark.skipif(
    PROMETHEUS is None, reason="no program prometheus on the PATH or in OPHION_PROMETHEUS (Debian: prometheus)"
)
LIMIT_S = 60.0


def quickstart(path: Path, *words: str) -> str:
    """Run a quickstart command on a machine with Prometheus."""
    assert PROMETHEUS is not None
    folders = os.pathsep.join((str(Path(PROMETHEUS).parent), os.environ["PATH"]))
    command = [*COMMAND, "quickstart", *words, f"--directory={path}"]
    done = subprocess.run(command, env=environment() | {"PATH": folders}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def fetch(url: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=LIMIT_S) as response:
        return json.loads(response.read())


@contextmanager
def prometheus(command: list[str], log: Path) -> Iterator[None]:
    assert PROMETHEUS is not None
    with log.open("wb") as output:
        process = subprocess.Popen([PROMETHEUS, *command[1:]], stdout=output, stderr=subprocess.STDOUT)
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def expressions(dashboard: Path) -> list[str]:
    """Return all queries of the dashboard, with the variables set to all nodes."""
    panels = json.loads(dashboard.read_text())["panels"]
    return [target["expr"].replace("$instance", ".*") for panel in panels for target in panel.get("targets", ())]


@NO_PROMETHEUS
def test_prometheus_reads_every_node_and_has_what_the_dashboard_asks_for(tmp_path: Path) -> None:
    path = tmp_path / "a network"
    quickstart(path, "up", "--detach", "--port=0", "--consensus=qbft", "--validators=1", "--block-period=1")
    try:
        found = holder(path)
        assert found is not None
        config = path / "monitoring" / "prometheus.yml"
        promtool = shutil.which("promtool", path=str(Path(PROMETHEUS or "").parent))
        if promtool is not None:
            done = subprocess.run([promtool, "check", "config", config], capture_output=True, text=True, timeout=30)
            assert done.returncode == 0, done.stdout + done.stderr
        # shorten the scrape interval, to save time
        config.write_text(config.read_text().replace('"15s"', '"1s"'))
        printed = quickstart(path, "up", "--print-commands")
        command = shlex.split(printed.partition("# prometheus\n")[2].splitlines()[0])
        with prometheus(command, tmp_path / "prometheus.log"):
            base, rpc = f"http://{found.address}/prometheus/api/v1", f"http://{found.address}/jsonrpc"

            def ask(expression: str) -> list[Any]:
                rows: list[Any] = fetch(f"{base}/query?{urllib.parse.urlencode({'query': expression})}")["data"][
                    "result"
                ]
                return rows

            def health() -> dict[str, str]:
                try:
                    targets = fetch(f"{base}/targets")["data"]["activeTargets"]
                except urllib.error.HTTPError:
                    return {}  # Prometheus does not answer yet, because it has just started
                return {target["labels"]["job"]: target["health"] for target in targets}

            wait_for(lambda: health() == {"rpcnode": "up", "validator1": "up"}, LIMIT_S, "both nodes are read")
            raw = legacy_transaction(DEV_KEYS[1], 0, chain_id=1337)
            for method, parameters in (
                ("eth_sendRawTransaction", ["0x" + raw.hex()]),
                ("eth_getBalance", ["0x12", "nonsense"]),  # this request fails, so that the error counter is not zero
            ):
                fetch(rpc, {"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters})
            dashboard = path / "monitoring" / "grafana" / "dashboards" / "ophion.json"
            missing = expressions(dashboard)
            assert len(missing) > 20

            def has_everything() -> bool:
                missing[:] = [one for one in missing if not ask(one)]
                return not missing

            try:
                wait_for(has_everything, LIMIT_S)
            except AssertionError:
                raise AssertionError(f"Prometheus knows nothing about {missing}") from None
            choices = fetch(f"{base}/label/instance/values?match[]=ethereum_blockchain_height")["data"]
            assert len(choices) == 2, "what the dashboard offers to choose from"
    finally:
        quickstart(path, "remove")
