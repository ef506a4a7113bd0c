"""Measure synchronisation from one peer over loopback, compared with the import of the same chain from a file.

    python bench/sync.py [CHAIN ...] [--rounds N]

CHAIN is a folder with genesis.json and blocks.rlp. Default: ../shared/bench/clique-30k, and a new chain of 20,000 empty
IBFT 2.0 blocks of four validators. Both nodes run on this machine, so the serving node uses part of the processors.
Both times come from the logs of the node. Compare only ratios between rows of one run.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from ophion.testing.bft_chain import bft_genesis_text, sealed_blocks
from ophion.testing.node_process import NodeProcess

ROOT = Path(__file__).resolve().parent.parent
CLIQUE = ROOT.parent / "shared" / "bench" / "clique-30k"
_LIMIT_S = 600.0


@dataclass(frozen=True, slots=True)
class Measured:
    """Results of one import and one synchronisation."""

    blocks: int
    import_s: float
    sync_s: float

    @property
    def ratio(self) -> float:
        """Return the speed of synchronisation relative to the import."""
        return self.import_s / self.sync_s


def bft_chain(folder: Path, blocks: int) -> Path:
    """Make a chain of empty blocks of four validators."""
    folder.mkdir()
    (folder / "genesis.json").write_text(bft_genesis_text("ibft2", 4))
    with (folder / "blocks.rlp").open("wb") as file:
        for _, block in sealed_blocks("ibft2", 4, blocks):
            file.write(block)
    return folder


def measured(chain: Path, work: Path) -> Measured:
    """Import the chain from its file into one node, then let another node synchronise from this node."""
    options = (f"--genesis-file={chain / 'genesis.json'}", "--p2p-port=0", "--discovery-enabled=false")
    server, follower = work / "server", work / "follower"
    import_s = imported(chain, server)
    with NodeProcess(server, *options) as one:
        height = one.height
        enode = one.rpc("net_enode")
        (work / "static.json").write_text(json.dumps([enode]))
        with NodeProcess(follower, *options, f"--static-nodes-file={work / 'static.json'}") as two:
            sync_s = synced(two, height)
            same = one.rpc("eth_getBlockByNumber", hex(height), False) == two.rpc(
                "eth_getBlockByNumber", hex(height), False
            )
            if not same:
                sys.exit("the two nodes have different heads")
    return Measured(height, import_s, sync_s)


def imported(chain: Path, data: Path) -> float:
    """Import a chain and return the seconds that the command reports."""
    command = [str(Path(sys.executable).with_name("ophion")), "blocks", "import", f"--from={chain / 'blocks.rlp'}"]
    command += [f"--genesis-file={chain / 'genesis.json'}", f"--data-path={data}"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = re.search(r"Imported .* in ([\d.]+) s", output)
    assert found is not None, output
    return float(found[1])


def synced(node: NodeProcess, height: int) -> float:
    """Return the seconds from the first to the last synchronisation line in the node's log."""
    deadline = time.monotonic() + _LIMIT_S
    while node.height < height:
        if time.monotonic() > deadline:
            sys.exit(f"not synchronised within {_LIMIT_S:g} s:\n{node.output()[-2000:]}")
        time.sleep(0.1)
    found = re.search(r"synchronised block=.* elapsed_s=([\d.]+)", node.output())
    while found is None:
        time.sleep(0.05)
        found = re.search(r"synchronised block=.* elapsed_s=([\d.]+)", node.output())
    return float(found[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chains", nargs="*", type=Path)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--blocks", type=int, default=20_000, help="of the chain that is made here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        chains = list(options.chains)
        if not chains:
            chains = [CLIQUE] if CLIQUE.exists() else []
            chains.append(bft_chain(Path(made) / "ibft2", options.blocks))
        for _ in range(options.rounds):
            for chain in chains:
                with tempfile.TemporaryDirectory() as work:
                    print(line(chain.name, measured(chain, Path(work))))


def line(name: str, one: Measured) -> str:
    """Return a line of the result table."""
    return (
        f"{name:<12} {one.blocks:>7,} blocks"
        f"  import {one.import_s:6.2f} s ({one.blocks / one.import_s:7,.0f}/s)"
        f"  sync {one.sync_s:6.2f} s ({one.blocks / one.sync_s:7,.0f}/s)  ratio {one.ratio:.2f}"
    )


if __name__ == "__main__":
    main()
