"""Names of the built-in network, of its forks, and of networks that this node does not join."""

from __future__ import annotations

from typing import Final

from ophion.errors import GenesisError

DEV_NETWORK: Final = "dev"
DEFAULT_DEV_FORK: Final = "osaka"

# this table maps the value of --dev-fork to the configuration key of the latest fork at genesis
FORK_KEYS: Final = {
    "frontier": None,
    "homestead": "homesteadBlock",
    "tangerine": "eip150Block",
    "spurious": "eip158Block",
    "byzantium": "byzantiumBlock",
    "constantinople": "constantinopleBlock",
    "petersburg": "constantinopleFixBlock",
    "istanbul": "istanbulBlock",
    "berlin": "berlinBlock",
    "london": "londonBlock",
    "shanghai": "shanghaiTime",
    "cancun": "cancunTime",
    "prague": "pragueTime",
    "osaka": "osakaTime",
}
DEV_FORKS: Final = tuple(FORK_KEYS)
"""Names of forks that `--dev-fork` accepts."""

PUBLIC_NETWORKS: Final = frozenset(
    {
        "mainnet",
        "ropsten",
        "rinkeby",
        "goerli",
        "kotti",
        "mordor",
        "classic",
        "sepolia",
        "holesky",
        "hoodi",
        "ephemery",
        "lukso",
        "linea_mainnet",
        "linea_sepolia",
        "future_eips",
        "experimental_eips",
    }
)


def check_network(name: str) -> None:
    """Raise `GenesisError` unless the network is built in."""
    folded = name.lower()
    if folded == DEV_NETWORK:
        return
    if folded in PUBLIC_NETWORKS:
        raise GenesisError(
            f"Network {name} is a public network, and this node is for private ones: use --network=dev or give a "
            "--genesis-file."
        )
    raise GenesisError(f"Unknown network {name}: the built-in network is dev; others need a --genesis-file.")
