"""A chain of transfers to new accounts, imported with every state and with those of the last blocks: size and time.

    python bench/state_history.py [--transfers 200000] [--in-block 100] [--history 128] [--work DIRECTORY]

Blocks are made once and kept in DIRECTORY (default: a temporary one). Both databases are checked afterwards.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ophion.chainspec.dev import ORIGINAL_ACCOUNTS
from ophion.native.crypto import keccak256

OPHION = str(Path(sys.executable).with_name("ophion"))


def ophion(*arguments: str) -> str:
    done = subprocess.run([OPHION, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(done.stdout + done.stderr)
    return done.stdout


def make(work: Path, transfers: int, in_block: int) -> Path:
    """The file of blocks."""
    blocks, description = work / "blocks.rlp", work / "description.json"
    if blocks.exists():
        return blocks
    key = "0x" + ORIGINAL_ACCOUNTS[1].private_key.hex()
    one = {"gasLimit": "0x5208", "gasPrice": "0x3e8", "value": "0x1", "secretKey": key}
    numbers = iter(range(transfers))
    made = []
    while rest := [number for _, number in zip(range(in_block), numbers, strict=False)]:
        made.append(
            {"transactions": [{**one, "to": "0x" + keccak256(number.to_bytes(8, "big"))[:20].hex()} for number in rest]}
        )
    description.write_text(json.dumps({"blocks": made}))
    data = f"--data-path={work / 'made'}"
    ophion("blocks", "import", "--format=JSON", f"--from={description}", "--network=dev", data)
    ophion("blocks", "export", f"--to={blocks}", data)
    return blocks


def measured(name: str, work: Path, blocks: Path, *options: str) -> tuple[float, int, int]:
    """Seconds, bytes of the file, bytes in use."""
    data = work / name
    began = time.perf_counter()
    ophion("blocks", "import", f"--from={blocks}", "--network=dev", f"--data-path={data}", *options)
    seconds = time.perf_counter() - began
    print(ophion("storage", "usage", f"--data-path={data}"))
    print(ophion("storage", "check", f"--data-path={data}"))
    file = data / "database" / "data.mdb"
    size = file.stat().st_blocks * 512
    copy = work / f"{name}-compact"
    subprocess.run(["rm", "-rf", str(copy)], check=True)
    ophion("storage", "backup", f"--data-path={data}", f"--to={copy}", "--max-rate=0", "--check=false")
    return seconds, size, (copy / "database" / "data.mdb").stat().st_size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--transfers", type=int, default=200_000)
    parser.add_argument("--in-block", type=int, default=100)
    parser.add_argument("--history", type=int, default=128)
    parser.add_argument("--work", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = options.work or Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        blocks = make(work, options.transfers, options.in_block)
        rows = [
            ("all", measured("all", work, blocks)),
            (str(options.history), measured("some", work, blocks, f"--state-history={options.history}")),
        ]
    print(f"{'states':>8}  {'seconds':>8}  {'file MB':>8}  {'in use MB':>9}")
    for name, (seconds, size, used) in rows:
        print(f"{name:>8}  {seconds:>8.1f}  {size / 1e6:>8.1f}  {used / 1e6:>9.1f}")
    print(f"file {rows[1][1][1] / rows[0][1][1]:.1%} of all states, in use {rows[1][1][2] / rows[0][1][2]:.1%}")


if __name__ == "__main__":
    main()
