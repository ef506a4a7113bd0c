"""Compare full synchronisation with the start from a checkpoint: python bench/checkpoint_sync.py [CHAIN] [--blocks N] …

CHAIN is a folder with genesis.json and blocks.rlp. Without it, the script makes a QBFT chain of four validators. Its
blocks create accounts and storage slots. Full: a new node fetches and executes every block from a peer. Checkpoint: a
new node fetches an archive over HTTP, verifies it and is at the head. Both times are from the start of the process to
the head. Both nodes must have the same head and pass `storage check`.
"""

from __future__ import annotations

import argparse
import functools
import json
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from ophion.testing.busy_chain import make_chain
from ophion.testing.node_process import NodeProcess

_LIMIT_S = 3600.0


def ophion(*arguments: str) -> None:
    subprocess.run([str(Path(sys.executable).with_name("ophion")), *arguments], check=True, capture_output=True)


@dataclass(frozen=True, slots=True)
class Measured:
    """Figures of one start of a new node."""

    seconds: float
    """Seconds from the start of the process to the head."""
    processor_s: float
    """Processor time of the node and its child process."""
    head: str
    output: str


def time_to_head(data: Path, height: int, *options: str) -> Measured:
    """Start a new node, wait until it has the head, and check its database."""
    began, used = time.monotonic(), processor_s()
    options = (*options, "--p2p-port=0", "--discovery-enabled=false")
    # a node that fetches a checkpoint or a state listens only after this download
    with NodeProcess(data, *options, start_limit_s=_LIMIT_S) as node:
        while node.height < height:
            if time.monotonic() - began > _LIMIT_S:
                sys.exit(f"not at the head within {_LIMIT_S:g} s:\n{node.output()[-2000:]}")
            time.sleep(0.05)
        node.rpc("eth_getBalance", "0x" + "00" * 20, "latest")  # the state of the head
        seconds = time.monotonic() - began
        head = node.rpc("eth_getBlockByNumber", hex(height), False)["hash"]
        output = node.output()
    used = processor_s() - used
    ophion("storage", "check", f"--data-path={data}")
    return Measured(seconds, used, head, output)


def processor_s() -> float:
    """Return the processor time of all child processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def compare(chain: Path, work: Path) -> None:
    genesis = f"--genesis-file={chain / 'genesis.json'}"
    ophion("blocks", "import", f"--from={chain / 'blocks.rlp'}", genesis, f"--data-path={work / 'server'}")
    (work / "www").mkdir()
    began = time.monotonic()
    archive = work / "www" / "chain.tar.gz"
    ophion(
        "storage", "backup", f"--data-path={work / 'server'}", f"--to={archive}", "--max-rate=0", "--latest-state-only"
    )
    print(f"backup: {time.monotonic() - began:.1f} s, {archive.stat().st_size / 1e6:.1f} MB")
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(work / "www"))
    web = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    options = (genesis, "--p2p-port=0", "--discovery-enabled=false")
    with NodeProcess(work / "server", *options) as server:
        height = server.height
        (work / "static.json").write_text(json.dumps([server.rpc("net_enode")]))
        full = time_to_head(work / "full", height, genesis, f"--static-nodes-file={work / 'static.json'}")
    url = f"http://127.0.0.1:{web.server_address[1]}/chain.tar.gz"
    short = time_to_head(work / "checkpoint", height, genesis, "--sync-mode=CHECKPOINT", f"--sync-checkpoint={url}")
    web.shutdown()
    if full.head != short.head:
        sys.exit(f"the heads differ: {full.head} and {short.head}")
    installed = re.search(r"checkpoint installed .* elapsed_s=([\d.]+)", short.output)
    print(f"{height:,} blocks, {installed[1] if installed else '?'} s to fetch and verify the checkpoint")
    for name, one in (("full", full), ("checkpoint", short)):
        print(f"{name:<10} {one.seconds:7.1f} s to the head, {one.processor_s:7.1f} s of processor time")
    print(f"ratio      {full.seconds / short.seconds:7.1f}   {full.processor_s / short.processor_s:23.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chain", nargs="?", type=Path)
    parser.add_argument("--blocks", type=int, default=20_000)
    parser.add_argument("--accounts", type=int, default=200_000)
    parser.add_argument("--slots", type=int, default=100_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        chain = options.chain
        if chain is None:
            chain = make_chain(Path(work) / "chain", "qbft", options.blocks, options.accounts, options.slots)
        compare(chain, Path(work))


if __name__ == "__main__":
    main()
