"""Real nodes as processes, started through the command line as a user would."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import ophion
from ophion.node.ports_file import NAME as PORTS_FILE

COMMAND = (sys.executable, "-m", "ophion")
_START_LIMIT_S = _STOP_LIMIT_S = _ANSWER_LIMIT_S = 120.0
"""Of what never comes: a machine that runs tests is busy, and what is there at once costs nothing."""
_WRONG_CLOCK = (
    "import runpy, time; right = time.time; time.time = lambda: right() + %g;"
    "runpy.run_module('ophion', None, '__main__')"
)
_ALONE = ("--p2p-interface=127.0.0.1", "--p2p-port=0", "--discovery-enabled=false")
"""Peers on this machine only and on a free port; `ophion dev` has none unless asked."""


def environment(**variables: str) -> dict[str, str]:
    """Variables for a process that must find this very package, installed or not."""
    here = str(Path(ophion.__file__).parents[1])
    path = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": f"{here}{os.pathsep}{path}" if path else here, **variables}


def processor_s(*pids: int) -> float:
    """Seconds of a core that these processes have used so far (Linux)."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def is_alive(pid: int) -> bool:
    """Whether anything of a process is left that holds files and ports; who is dead and not buried does not (Linux).

    A killed process looks like that as soon as its first thread is gone, while the others still have everything open.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    state, threads = fields[0], int(fields[17])
    return state not in "ZX" or threads > 1


class RpcFailure(Exception):
    """A JSON-RPC error answer."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(f"{error['code']} {error['message']}")
        self.code: int = error["code"]
        self.message: str = error["message"]


class NodeProcess:
    """One `ophion` process; a context manager that leaves nothing behind.

    HTTP and WebSocket take free ports, which the ports file names. Output goes to `log` in the data path's parent.
    """

    def __init__(
        self,
        data_path: Path,
        *options: str,
        command: Sequence[str] = (),
        has_http: bool = True,
        clock_ahead_s: float = 0.0,
        launcher: Sequence[str] = COMMAND,
    ) -> None:
        """`launcher` runs the command in place of the usual one, and knows more about it then."""
        self.data_path = data_path
        self._launcher = launcher if not clock_ahead_s else (sys.executable, "-c", _WRONG_CLOCK % clock_ahead_s)
        self.log = data_path.with_name(data_path.name + ".log")
        self._arguments = [
            *command,
            f"--data-path={data_path}",
            *(("--rpc-http-enabled", "--rpc-http-port=0") if has_http else ()),
            *(() if "dev" in command or any(one.startswith("--p2p") for one in options) else _ALONE),
            *options,
        ]
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: http.client.HTTPConnection | None = None
        self.ports: dict[str, int] = {}

    def start(self) -> NodeProcess:
        """Start and wait until the services listen."""
        (self.data_path / PORTS_FILE).unlink(missing_ok=True)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._launcher, *self._arguments], stdout=log, stderr=subprocess.STDOUT, env=environment()
            )
        try:
            self._wait_for_ports(self._process)
        except BaseException:
            # whoever did not get it cannot end it
            if self.is_running:
                self.kill()
            raise
        lines = (self.data_path / PORTS_FILE).read_text().splitlines()
        self.ports = {name: int(port) for name, _, port in (line.partition("=") for line in lines) if port}
        return self

    def _wait_for_ports(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + _START_LIMIT_S
        while not (self.data_path / PORTS_FILE).exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"the node did not start:\n{self.output()[-2000:]}")
            time.sleep(0.005)

    def rpc(self, method: str, *params: Any) -> Any:
        """Call a method over one kept connection; `RpcFailure` for an error answer."""
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        if self._connection is None:
            self._connection = http.client.HTTPConnection("127.0.0.1", self.ports["json-rpc"], timeout=_ANSWER_LIMIT_S)
        self._connection.request("POST", "/", body, {"Content-Type": "application/json"})
        answer = json.loads(self._connection.getresponse().read())
        if "error" in answer:
            raise RpcFailure(answer["error"])
        return answer["result"]

    @property
    def height(self) -> int:
        """The number of its head."""
        return int(self.rpc("eth_blockNumber"), 16)

    def send(self, raw: bytes) -> str:
        """eth_sendRawTransaction"""
        hash: str = self.rpc("eth_sendRawTransaction", "0x" + raw.hex())
        return hash

    def receipt(self, hash: str, limit_s: float = 60.0) -> dict[str, Any]:
        """The receipt of a transaction, once it is there."""
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            found: dict[str, Any] | None = self.rpc("eth_getTransactionReceipt", hash)
            if found is not None:
                return found
            time.sleep(0.001)
        raise AssertionError(f"no receipt of {hash}")

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Ask the node to stop; its exit code."""
        assert self._process is not None
        self._forget_connection()
        self._process.send_signal(number)
        return self._process.wait(_STOP_LIMIT_S)

    def kill(self) -> None:
        """End the node without any warning."""
        assert self._process is not None
        self._forget_connection()
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait(_STOP_LIMIT_S)

    def output(self) -> str:
        """What the node has written so far, in all its runs."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def _forget_connection(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> NodeProcess:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.is_running:
            self.kill()


MINING = ("--network=dev", "--miner-enabled", "--miner-coinbase=0xfe3b557e8fb62b89f4916b721be55ceb828dbd73")
"""Options of a development node that makes blocks."""
