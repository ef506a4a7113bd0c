"""Measures an honest client and the memory of the node during an attack: python -m tests.abuse.watch URL PID [HEADER]

The watcher runs in its own process, so that the attacker's work does not count as the node's time. It requests the
block number every few milliseconds, over an open connection or a new one, and reads the memory of the node. For each
line on its input, it prints the figures since the last line as JSON.

The watcher records three times for each request: the wall time, the processor time of the node's event loop, and the
time in which the loop or the watcher was ready but had no processor. The node causes the second time; other load on the
machine causes the third.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import ssl
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from subprocess import PIPE, Popen
from urllib.parse import urlsplit

BODY = b'{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}'
HEAD = b"POST %b HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n%bContent-Length: %d\r\n\r\n"
PAUSE_S = 0.01
LIMIT_S = 20.0
MEMORY_PAUSE_S = 0.02
NEW_EVERY = 4
"""Number of requests for each new connection."""


@dataclass
class Seen:
    """Figures of an honest client during an attack."""

    requests: int
    lost: int
    """Number of requests without an answer."""
    p99_s: float
    worst_s: float
    busy_p99_s: float
    """Processor time of the node's event loop: 99th percentile, and maximum."""
    busy_worst_s: float
    ready_p99_s: float
    """Time in which the loop or the client was ready but had no processor: 99th percentile, and maximum."""
    ready_worst_s: float
    peak_mb: float
    now_mb: float


def memory_mb(pid: int | None) -> float:
    """Return the memory of a process."""
    if pid is None:
        return 0.0
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def loop_seconds(pid: int) -> tuple[float, float]:
    """Return two times of the event loop (the first thread) in seconds: running, and ready but without a processor."""
    if not pid:
        return 0.0, 0.0
    at_work, ready, _ = Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()
    return int(at_work) / 1e9, int(ready) / 1e9


class Watcher:
    """The honest client, controlled by the attacking process."""

    def __init__(self, url: str, pid: int | None, header: bytes = b"") -> None:
        """Start the client. `header` is an additional line of its requests."""
        command = [sys.executable, "-m", "tests.abuse.watch", url, str(pid or 0), header.decode()]
        self._process = Popen(command, stdin=PIPE, stdout=PIPE, text=True)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout

    def report(self) -> Seen:
        """Return the figures since the last report."""
        self._stdin.write("\n")
        self._stdin.flush()
        return Seen(**json.loads(self._stdout.readline()))

    def close(self) -> None:
        self._stdin.close()
        self._process.wait()
        self._stdout.close()


# --- in the process ------------------------------------------------------------------------------


class _Client:
    def __init__(self, url: str, header: bytes) -> None:
        parts = urlsplit(url)
        self._place = (parts.hostname or "", parts.port or 0)
        self._tls: ssl.SSLContext | None = None
        if parts.scheme == "https":
            self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            self._tls.check_hostname, self._tls.verify_mode = False, ssl.CERT_NONE
        self._request = HEAD % (parts.path.encode(), header, len(BODY)) + BODY
        self._kept: socket.socket | None = None
        self._turn = 0

    def ask(self) -> bool:
        """Send a request. Returns whether the node answered it."""
        self._turn += 1
        try:
            if self._turn % NEW_EVERY == 0:
                with self._connected() as new:
                    return self._answered(new)
            if self._kept is None:
                self._kept = self._connected()
            if self._answered(self._kept):
                return True
        except OSError:
            pass
        if self._kept is not None:
            self._kept.close()
            self._kept = None
        return False

    def _connected(self) -> socket.socket:
        connection = socket.create_connection(self._place, LIMIT_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection if self._tls is None else self._tls.wrap_socket(connection)

    def _answered(self, connection: socket.socket) -> bool:
        connection.sendall(self._request)
        answer = b""
        while more := connection.recv(4096):
            answer += more
            head, end, body = answer.partition(b"\r\n\r\n")
            if end and len(body) >= int(head.lower().partition(b"content-length: ")[2].split(b"\r")[0] or 0):
                return b'"result"' in body
        return False


def _watch_memory(pid: int, peak: list[float]) -> None:
    while True:
        with contextlib.suppress(OSError, StopIteration):
            peak[0] = max(peak[0], memory_mb(pid))
        time.sleep(MEMORY_PAUSE_S)


def _percentile(times: list[float]) -> tuple[float, float]:
    """Return the 99th percentile and the maximum."""
    times.sort()
    return (times[int(len(times) * 0.99)], times[-1]) if times else (LIMIT_S, LIMIT_S)


def main(url: str, pid: int, header: str = "") -> None:
    client, lost, peak, me = _Client(url, header.encode()), 0, [0.0], os.getpid()
    times, busy, waits = list[float](), list[float](), list[float]()
    if pid:
        threading.Thread(target=_watch_memory, args=(pid, peak), daemon=True).start()
    while True:
        began, (worked, ready), own = time.perf_counter(), loop_seconds(pid), loop_seconds(me)[1]
        if client.ask():
            times.append(time.perf_counter() - began)
            worked_s, ready_s = loop_seconds(pid)
            busy.append(worked_s - worked)
            waits.append(ready_s - ready + loop_seconds(me)[1] - own)
        else:
            lost += 1
        if select.select([sys.stdin], [], [], PAUSE_S)[0]:
            if not sys.stdin.readline():
                return
            shown = (one for kind in (times, busy, waits) for one in _percentile(kind))
            seen = Seen(len(times), lost, *shown, peak[0], memory_mb(pid or None))
            print(json.dumps(asdict(seen)), flush=True)
            times, busy, waits, lost, peak[0] = [], [], [], 0, 0.0


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
