"""Measure size and time of a chain of transfers to new accounts, with all states stored and with only recent states.

    python bench/state_history.py [--transfers 200000] [--in-block 50] [--history 128] [--work DIRECTORY]

Blocks are made and committed one by one, as a validator does. The databases stay in DIRECTORY (default: a temporary
one) and are checked at the end.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ophion.chainspec.dev_network import ORIGINAL_ACCOUNTS
from ophion.native.crypto import keccak256

OPHION = str(Path(sys.executable).with_name("ophion"))


def ophion(*arguments: str) -> str:
    done = subprocess.run([OPHION, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(done.stdout + done.stderr)
    return done.stdout


def describe(work: Path, transfers: int, in_block: int) -> Path:
    """Write a description of the chain: one account sends each transfer to a new account."""
    key = "0x" + ORIGINAL_ACCOUNTS[1].private_key.hex()
    one = {"gasLimit": "0x5208", "gasPrice": "0x3e8", "value": "0x1", "secretKey": key}
    receivers = ["0x" + keccak256(number.to_bytes(8, "big"))[:20].hex() for number in range(transfers)]
    blocks = [
        {"transactions": [{**one, "to": receiver} for receiver in receivers[start : start + in_block]]}
        for start in range(0, transfers, in_block)
    ]
    description = work / "description.json"
    description.write_text(json.dumps({"blocks": blocks}))
    return description


def measured(data: Path, description: Path, *options: str) -> tuple[float, int]:
    """Make the chain. Returns the seconds, and the bytes of the database file."""
    began = time.perf_counter()
    path = f"--data-path={data}"
    ophion("blocks", "import", "--format=JSON", f"--from={description}", "--network=dev", path, *options)
    seconds = time.perf_counter() - began
    print(ophion("storage", "usage", path))
    print(ophion("storage", "check", path), flush=True)
    return seconds, (data / "database" / "data.mdb").stat().st_blocks * 512


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--transfers", type=int, default=200_000)
    parser.add_argument("--in-block", type=int, default=50)
    parser.add_argument("--history", type=int, default=128)
    parser.add_argument("--work", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = options.work or Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        description = describe(work, options.transfers, options.in_block)
        every = measured(work / "all", description)
        some = measured(work / "some", description, f"--state-history={options.history}")
        ophion("blocks", "export", f"--to={work / 'blocks.rlp'}", f"--data-path={work / 'all'}")
    for name, (seconds, size) in (("all states", every), (f"{options.history} states", some)):
        print(f"{name}: {seconds:.1f} s, {size / 1e6:.1f} MB")
    print(f"{some[1] / every[1]:.1%}")


if __name__ == "__main__":
    main()
