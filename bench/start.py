"""Measure the time from process start to the first answer, and idle memory.

    python bench/start.py [--starts 20] [--form dev|peers] [COMMAND ...]

Each COMMAND is an `ophion` command to start. Several commands, for example of different versions, alternate. The
default is the command of this interpreter. `dev` is `ophion dev` with a data path; `peers` is a node of the development
network with peers and durable commits. Prints JSON lines: wall time in seconds (median, minimum), processor time until
the answer, resident megabytes two seconds later. Modules must be compiled (`make build`). The first start of each
command does not count, because files may not be in the page cache. Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

FORMS = {
    "dev": ("dev", "--rpc-ws-port=0", "--graphql-http-port=0", "--page-http-port=0"),
    "peers": ("--network=dev", "--rpc-http-enabled", "--p2p-interface=127.0.0.1", "--p2p-port=0"),
}
BODY = b'{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}'
REQUEST = (
    b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(BODY)
) + BODY
LIMIT_S = 30.0


class Started(NamedTuple):
    """Figures of one start of a node."""

    seconds: float
    processor_s: float
    megabytes: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", nargs="*", default=[f"{Path(sys.executable).parent}/ophion"], metavar="COMMAND")
    parser.add_argument("--starts", type=int, default=20)
    parser.add_argument("--form", choices=FORMS, default="dev")
    parser.add_argument("--idle", type=float, default=2.0, help="seconds until the memory is looked at")
    arguments = parser.parse_args()
    found: dict[str, list[Started]] = {command: [] for command in arguments.command}
    for number in range(arguments.starts + 1):
        for command in arguments.command:
            started = start(command, FORMS[arguments.form], arguments.idle)
            if number:
                found[command].append(started)
    for command, starts in found.items():
        seconds, processor_s, megabytes = zip(*starts, strict=True)
        print(
            json.dumps(
                {
                    "command": command,
                    "form": arguments.form,
                    "starts": len(starts),
                    "start_s": round(median(seconds), 3),
                    "least_s": round(min(seconds), 3),
                    "processor_s": round(median(processor_s), 3),
                    "idle_mb": round(median(megabytes), 1),
                }
            )
        )


def start(command: str, options: Sequence[str], idle_s: float) -> Started:
    """Start a node, send requests until it answers, measure it and stop it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="start-") as folder:
        began = time.perf_counter()
        node = subprocess.Popen(
            [command, *options, f"--rpc-http-port={port}", f"--data-path={folder}/data"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            wait_for_answer(node, port, began + LIMIT_S)
            seconds = time.perf_counter() - began
            processor_s = processor_ns(node.pid) / 1e9
            time.sleep(idle_s)
            pages = int(Path(f"/proc/{node.pid}/statm").read_text().split()[1])
        finally:
            node.send_signal(signal.SIGTERM)
            node.wait(15)
    return Started(seconds, processor_s, pages * os.sysconf("SC_PAGE_SIZE") / 2**20)


def wait_for_answer(node: subprocess.Popen[bytes], port: int, deadline: float) -> None:
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=5) as client:
                client.sendall(REQUEST)
                if client.recv(4096).startswith(b"HTTP/1.1 200"):
                    return
        except OSError:
            if node.poll() is not None or time.perf_counter() > deadline:
                raise SystemExit("the node did not start") from None
            time.sleep(0.002)


def processor_ns(pid: int) -> int:
    """Return the processor time of all threads in nanoseconds."""
    return sum(int(one.read_text().split()[0]) for one in Path(f"/proc/{pid}/task").glob("*/schedstat"))


if __name__ == "__main__":
    main()
