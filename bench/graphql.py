"""GraphQL side by side: requests per second and CPU time per request, geth beside Ophion where there is one.

    python bench/graphql.py [--seconds N] [--rounds N] [CHAIN]

CHAIN is a folder with genesis.json and blocks.rlp (default: ../shared/bench/clique-30k). Set GETH to a geth binary
(1.13.15 is the last that knows Clique). Needs wrk. Only ratios between rows of one run mean anything; on a busy machine
the CPU time per request says more than the rate.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHAIN = ROOT.parent / "shared" / "bench" / "clique-30k"
COMMAND = (sys.executable, "-m", "ophion")

TEN_FIELDS = (
    "number hash nonce timestamp gasUsed gasLimit stateRoot receiptsRoot transactionsRoot extraData"  # ten of them
)
TRANSACTIONS = "number transactions{hash index value gasPrice gas from{address} to{address} status gasUsed}"


@dataclass(frozen=True, slots=True)
class Work:
    """One kind of request: Lua that makes the JSON of request number `n`, and how many clients ask at a time."""

    name: str
    lua: str
    connections: int
    patience: int = 1
    """How many times as long as usual it is measured."""


def works(head: int, last: int) -> list[Work]:
    """The requests of the comparison on a chain with this head."""
    literal = f'"{{\\"query\\":\\"{{block(number:" .. (n % {head}) .. "){{{TEN_FIELDS}}}}}\\"}}"'
    variables = (
        f'"{{\\"query\\":\\"query($n:Long){{block(number:$n){{{TEN_FIELDS}}}}}\\",\\"variables\\":{{\\"n\\":" '
        f'.. (n % {head}) .. "}}}}"'
    )
    shape = f'"{{\\"query\\":\\"{{a" .. n .. ":block(number:1){{{TEN_FIELDS}}}}}\\"}}"'
    many = f'"{{\\"query\\":\\"{{blocks(from:1,to:{last}){{{TRANSACTIONS}}}}}\\"}}"'
    return [
        Work("one block, ten fields, literal number", literal, 32),
        Work("the same with variables", variables, 32),
        Work("the same, every document of a new shape", shape, 32),
        Work(f"{last} blocks with transactions, senders and receipts", many, 2, patience=3),
    ]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


class Peer:
    """A node that serves the chain."""

    def __init__(self, name: str, prepare: Sequence[Sequence[str]], serve: Sequence[str], port: int) -> None:
        self.name = name
        self.port = port
        for command in prepare:
            subprocess.run(command, check=True, capture_output=True)
        self._process = subprocess.Popen(serve, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 30
        while not self._answers():
            if time.monotonic() > deadline or self._process.poll() is not None:
                raise SystemExit(f"{name} does not answer on port {port}")
            time.sleep(0.05)

    def _answers(self) -> bool:
        try:
            return self.ask("{block{number}}")[0] == 200
        except OSError:
            return False

    def ask(self, document: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        body = json.dumps({"query": document})
        connection.request("POST", "/graphql", body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, response.read()

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(30)


def ophion(chain: Path, work: Path) -> Peer:
    data, genesis, port = work / "ophion", chain / "genesis.json", free_port()
    base = [*COMMAND, f"--genesis-file={genesis}", f"--data-path={data}"]
    load = [*COMMAND, "blocks", "import", f"--from={chain / 'blocks.rlp'}", *base[3:]]
    serve = [*base, "--p2p-enabled=false", "--graphql-http-enabled", f"--graphql-http-port={port}"]
    return Peer("ophion", [load], serve, port)


def geth(chain: Path, work: Path) -> Peer:
    data, port = work / "geth", free_port()
    base = [os.environ["GETH"], "--datadir", str(data)]
    prepare = [
        [*base, "init", str(chain / "genesis.json")],
        [*base, "import", "--gcmode", "archive", str(chain / "blocks.rlp")],
    ]
    serve = [*base, "--gcmode", "archive", "--nodiscover", "--port", "0", "--authrpc.port", str(free_port()), "--http"]
    return Peer("geth", prepare, [*serve, "--http.port", str(port), "--graphql", "--ipcdisable"], port)


def measure(peer: Peer, work: Work, seconds: int) -> tuple[float, float]:
    """Requests per second, and CPU microseconds per request."""
    script = f"""
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
local n = math.random(1000000)
request = function() n = n + 1; return wrk.format(nil, "/graphql", nil, {work.lua}) end
"""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        file.write(script)
        file.flush()
        before = peer.cpu_seconds()
        command = ["wrk", "-t1", f"-c{work.connections}", f"-d{seconds}s", "-s", file.name]
        output = subprocess.run([*command, f"http://127.0.0.1:{peer.port}"], check=True, capture_output=True, text=True)
        spent = peer.cpu_seconds() - before
    if "Non-2xx" in output.stdout:
        raise SystemExit(f"{peer.name}: {work.name}: {output.stdout}")
    found = re.search(r"(\d+) requests in", output.stdout)
    rate = re.search(r"Requests/sec:\s+([\d.]+)", output.stdout)
    assert found is not None and rate is not None, output.stdout  # noqa: PT018  # a tool's output, not a test
    return float(rate[1]), spent / max(1, int(found[1])) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chain", nargs="?", type=Path, default=CHAIN)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    work = Path(tempfile.mkdtemp())
    peers: list[Peer] = []
    try:
        peers.append(ophion(options.chain, work))
        if "GETH" in os.environ:
            peers.append(geth(options.chain, work))
        head = json.loads(peers[0].ask("{block{number}}")[1])["data"]["block"]["number"]
        print(f"chain of {head} blocks, {options.rounds} rounds of {options.seconds} s, medians")
        for one in works(head, min(head, 100)):
            rates: dict[str, list[tuple[float, float]]] = {peer.name: [] for peer in peers}
            for _ in range(options.rounds):
                for peer in peers:
                    rates[peer.name].append(measure(peer, one, options.seconds * one.patience))
            print(f"\n{one.name}")
            for name, figures in rates.items():
                rate, cost = (statistics.median(column) for column in zip(*figures, strict=True))
                print(f"  {name:8} {rate:10,.1f} requests/s {cost:12,.1f} CPU microseconds each")
    finally:
        for peer in peers:
            peer.stop()
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
