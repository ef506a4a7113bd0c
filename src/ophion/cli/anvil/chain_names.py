"""Names of forks and chains on Anvil's command line."""

from __future__ import annotations

from typing import Final

from ophion.runtime.options.values import read_int

_FORKS: Final = {
    "dao": "homestead",
    "tangerinewhistle": "tangerine",
    "spuriousdragon": "spurious",
    "muirglacier": "istanbul",
    "arrowglacier": "london",
    "grayglacier": "london",
    "paris": "london",
    "merge": "london",
    "latest": "osaka",
    "bpo1": "osaka",
    "bpo2": "osaka",
    "bpo3": "osaka",
    "bpo4": "osaka",
    "bpo5": "osaka",
}
"""Fork names of Anvil, with the fork of this node that has the same rules of execution."""

_CHAINS: Final = {
    "mainnet": 1,
    "ethereum": 1,
    "optimism": 10,
    "bsc": 56,
    "gnosis": 100,
    "xdai": 100,
    "polygon": 137,
    "sonic": 146,
    "fantom": 250,
    "zksync": 324,
    "moonbeam": 1284,
    "dev": 1337,
    "mantle": 5000,
    "base": 8453,
    "holesky": 17000,
    "anvil-hardhat": 31337,
    "arbitrum": 42161,
    "celo": 42220,
    "avalanche": 43114,
    "linea": 59144,
    "amoy": 80002,
    "blast": 81457,
    "base-sepolia": 84532,
    "arbitrum-sepolia": 421614,
    "scroll": 534352,
    "hoodi": 560048,
    "sepolia": 11155111,
    "optimism-sepolia": 11155420,
}


def fork_name(name: str) -> str:
    """Translate a fork name of other development nodes to the name of this node."""
    folded = name.lower().replace("_", "").replace("-", "").replace(" ", "")
    return _FORKS.get(folded, folded)


def chain_id(text: str) -> int:
    """Read a chain id, as a number or as the name of a public chain."""
    known = _CHAINS.get(text.lower())
    if known is not None:
        return known
    try:
        return read_int(text)
    except ValueError:
        raise ValueError(f"'{text[:100]}' is neither a number nor a chain name that this node knows") from None
