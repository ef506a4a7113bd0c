"""Make a long chain of empty BFT blocks for comparisons. Each header carries the seals of a quorum.

    python bench/bft_chain.py FOLDER [--blocks 20000] [--validators 4] [--protocol ibft2|qbft]

Writes genesis.json and blocks.rlp. The same arguments give the same blocks.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ophion.testing.bft_chain import KEYS, bft_genesis_text, sealed_blocks


def make_chain(folder: Path, protocol: str, blocks: int, validators: int) -> None:
    """Write genesis.json and blocks.rlp of a chain into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "genesis.json").write_text(bft_genesis_text(protocol, validators))
    with (folder / "blocks.rlp").open("wb") as file:
        for _, block in sealed_blocks(protocol, validators, blocks):
            file.write(block)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--blocks", type=int, default=20_000)
    parser.add_argument("--validators", type=int, default=4, choices=range(1, len(KEYS) + 1))
    parser.add_argument("--protocol", choices=("ibft2", "qbft"), default="ibft2")
    options = parser.parse_args()
    make_chain(options.folder, options.protocol, options.blocks, options.validators)


if __name__ == "__main__":
    main()
