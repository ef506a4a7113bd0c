"""Runs real nodes as processes of the command line."""

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
"""Timeouts after which a test fails. They are long, because test machines are busy."""
_WRONG_CLOCK = (
    "import runpy, time; right = time.time; time.time = lambda: right() + %g;"
    "runpy.run_module('ophion', None, '__main__')"
)
_ALONE = ("--p2p-interface=127.0.0.1", "--p2p-port=0", "--discovery-enabled=false")
"""Options for peers on loopback with a free port. `ophion dev` needs no such options, because it has no peers by
default.
"""


def environment(**variables: str) -> dict[str, str]:
    """Return the environment of a process that can import this package, even if the package is not installed."""
    here = str(Path(ophion.__file__).parents[1])
    path = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": f"{here}{os.pathsep}{path}" if path else here, **variables}


def processor_s(*pids: int) -> float:
    """Return the CPU seconds of these processes so far (Linux)."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def is_alive(pid: int) -> bool:
    """Return whether a process may still hold files and ports (Linux).

    A killed process has the state of a zombie once its main thread has ended, but counts as alive until its other
    threads have ended too.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    state, threads = fields[0], int(fields[17])
    return state not in "ZX" or threads > 1


class RpcFailure(Exception):
    """Raised for a JSON-RPC error reply."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(f"{error['code']} {error['message']}")
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.data: str | None = error.get("data")


class NodeProcess:
    """One `ophion` process; a context manager that stops it.

    HTTP and WebSocket use free ports, which are in the ports file. Output goes to `log` in the parent of the data path.
    """

    def __init__(
        self,
        data_path: Path,
        *options: str,
        command: Sequence[str] = (),
        has_http: bool = True,
        clock_ahead_s: float = 0.0,
        launcher: Sequence[str] = COMMAND,
        start_limit_s: float = _START_LIMIT_S,
    ) -> None:
        """Prepare a process. `launcher` runs the command instead of the Python interpreter.

        After `start_limit_s`, the process is killed if its services do not listen.
        """
        self.data_path = data_path
        self._start_limit_s = start_limit_s
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
        """Start the node and wait until its services listen."""
        (self.data_path / PORTS_FILE).unlink(missing_ok=True)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._launcher, *self._arguments], stdout=log, stderr=subprocess.STDOUT, env=environment()
            )
        try:
            self._wait_for_ports(self._process)
        except BaseException:
            # kill the process here, because after an error the caller gets no object to stop
            if self.is_running:
                self.kill()
            raise
        lines = (self.data_path / PORTS_FILE).read_text().splitlines()
        self.ports = {name: int(port) for name, _, port in (line.partition("=") for line in lines) if port}
        return self

    def _wait_for_ports(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + self._start_limit_s
        while not (self.data_path / PORTS_FILE).exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"the node did not start:\n{self.output()[-2000:]}")
            time.sleep(0.005)

    def rpc(self, method: str, *params: Any) -> Any:
        """Call a method over one reused connection. Raises `RpcFailure`."""
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
        """Return the number of the node's head."""
        return int(self.rpc("eth_blockNumber"), 16)

    def send(self, raw: bytes) -> str:
        """Send a raw transaction."""
        hash: str = self.rpc("eth_sendRawTransaction", "0x" + raw.hex())
        return hash

    def receipt(self, hash: str, limit_s: float = 60.0) -> dict[str, Any]:
        """Wait for the receipt of a transaction."""
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            found: dict[str, Any] | None = self.rpc("eth_getTransactionReceipt", hash)
            if found is not None:
                return found
            time.sleep(0.001)
        raise AssertionError(f"no receipt of {hash}")

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Stop the node; return its exit code."""
        assert self._process is not None
        self._forget_connection()
        self._process.send_signal(number)
        return self._process.wait(_STOP_LIMIT_S)

    def kill(self) -> None:
        """Kill the node."""
        assert self._process is not None
        self._forget_connection()
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait(_STOP_LIMIT_S)

    def output(self) -> str:
        """Return the output of all runs so far."""
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
"""Options of a development node that mines."""
