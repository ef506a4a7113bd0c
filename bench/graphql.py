"""Measure GraphQL: requests per second and CPU time per request, for Ophion and, if available, for geth.

    GETH=/path/to/geth python bench/graphql.py [--seconds N] [--rounds N] [--chain FOLDER]

By default the chain has 120 blocks of 40 transactions (made by clique_chain.py); FOLDER may have another chain
(genesis.json and blocks.rlp). geth 1.13.15 is the last version with Clique. Needs wrk. The answers of both nodes are
compared first. Compare only ratios between rows of one run; on a busy machine, ratios of CPU time are more reliable
than ratios of requests per second.
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
from typing import Any

from clique_chain import make_chain

COMMAND = (sys.executable, "-m", "ophion")

BLOCKS = 120
TRANSACTIONS_EACH = 40

TEN_FIELDS = "number hash nonce timestamp gasUsed gasLimit stateRoot receiptsRoot transactionsRoot extraData"
TRANSACTIONS = "hash nonce index value gasPrice gas inputData from{address} to{address}"
RECEIPTS = "status gasUsed cumulativeGasUsed logs{topics data}"


@dataclass(frozen=True, slots=True)
class Work:
    """One kind of request: Lua code that makes the JSON of request number `n`, and the number of concurrent clients."""

    name: str
    lua: str
    connections: int
    document: str
    """A document to which both nodes must give the same answer."""
    wanted: float
    """Minimum ratio of Ophion's request rate to geth's request rate."""
    patience: int = 1
    """Factor by which the measurement is longer than the default."""


def works(head: int, last: int) -> list[Work]:
    """Return the requests of the comparison, for a chain with this head."""
    literal = f'"{{\\"query\\":\\"{{block(number:" .. (n % {head}) .. "){{{TEN_FIELDS}}}}}\\"}}"'
    variables = (
        f'"{{\\"query\\":\\"query($n:Long){{block(number:$n){{{TEN_FIELDS}}}}}\\",\\"variables\\":{{\\"n\\":" '
        f'.. (n % {head}) .. "}}}}"'
    )
    shape = f'"{{\\"query\\":\\"{{a" .. n .. ":block(number:1){{{TEN_FIELDS}}}}}\\"}}"'
    one = f"{{block(number:1){{{TEN_FIELDS}}}}}"
    bare = f"{{blocks(from:1,to:{last}){{number transactions{{{TRANSACTIONS}}}}}}}"
    full = f"{{blocks(from:1,to:{last}){{number transactions{{{TRANSACTIONS} {RECEIPTS}}}}}}}"

    def always(document: str) -> str:
        return f'"{{\\"query\\":\\"{document}\\"}}"'

    return [
        Work("one block, ten fields, literal number", literal, 32, one, 1.5),
        Work("the same with variables", variables, 32, one, 2.0),
        Work("the same, every document of a new shape", shape, 32, one, 0.0),
        Work(f"{last} blocks with transactions and senders", always(bare), 2, bare, 3.0),
        Work(f"{last} blocks with transactions, senders and receipts", always(full), 2, full, 3.0, patience=2),
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
    """Return requests per second, and CPU microseconds per request."""
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
    assert found is not None and rate is not None, output.stdout  # noqa: PT018  # this assert checks a tool's output
    return float(rate[1]), spent / max(1, int(found[1])) * 1e6


def plain(value: Any) -> Any:
    """Convert an answer to geth's form, in which all numbers are hex text."""
    if isinstance(value, dict):
        return {name: plain(member) for name, member in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return hex(value) if isinstance(value, int) else value


def compare_answers(peers: Sequence[Peer], works: Sequence[Work]) -> None:
    """Check that all nodes give the same answers."""
    for work in works:
        answers = [plain(json.loads(peer.ask(work.document)[1])) for peer in peers]
        if any(answer != answers[0] for answer in answers) or "errors" in answers[0]:
            raise SystemExit(f"{work.name}: the answers differ")


def compare_speed(peers: Sequence[Peer], work: Work, seconds: int, rounds: int) -> None:
    """Print the medians of one kind of request. The nodes are measured alternately."""
    figures: dict[str, list[tuple[float, float]]] = {peer.name: [] for peer in peers}
    for _ in range(rounds):
        for peer in peers:
            figures[peer.name].append(measure(peer, work, seconds * work.patience))
    medians = {
        name: tuple(statistics.median(column) for column in zip(*rows, strict=True)) for name, rows in figures.items()
    }
    print(f"\n{work.name} ({len(peers[0].ask(work.document)[1]):,} bytes)")
    for name, (rate, cost) in medians.items():
        print(f"  {name:8} {rate:10,.1f} requests/s {cost:12,.1f} CPU microseconds each")
    if "geth" in medians:
        (rate, cost), (other_rate, other_cost) = medians["ophion"], medians["geth"]
        print(f"  {rate / other_rate:.2f} times as many requests, {other_cost / cost:.2f} times as many per CPU second")
        if work.wanted:
            print(f"  at least {work.wanted} times are wanted")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chain", type=Path)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    work = Path(tempfile.mkdtemp())
    chain = options.chain or work / "chain"
    peers: list[Peer] = []
    try:
        if options.chain is None:
            make_chain(chain, BLOCKS, TRANSACTIONS_EACH)
        peers.append(ophion(chain, work))
        if "GETH" in os.environ:
            peers.append(geth(chain, work))
        head = json.loads(peers[0].ask("{block{number}}")[1])["data"]["block"]["number"]
        kinds = works(head, min(head, 100))
        compare_answers(peers, kinds)
        print(f"chain of {head} blocks; medians of {options.rounds} rounds of {options.seconds} s")
        for kind in kinds:
            compare_speed(peers, kind, options.seconds, options.rounds)
    finally:
        for peer in peers:
            peer.stop()
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
