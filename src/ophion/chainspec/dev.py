"""The built-in development network, and the names of networks this node does not join.

With `--dev-fork=petersburg` the genesis is the one of the original client, hash and all: chain id 2018, ethash with a
fixed difficulty of 100, three funded accounts. By default every fork to Osaka is active from the start and the base fee
stays zero (`zeroBaseFee`), so that today's compilers work and transactions with gas price 0 are valid.

The keys of the accounts are published everywhere. They are for tests and for nothing else.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from ophion.chainspec.forks import Milestone
from ophion.chainspec.genesis import Genesis, parse_genesis
from ophion.chainspec.system_contracts import SYSTEM_CONTRACTS
from ophion.errors import GenesisError
from ophion.primitives.types import Address

DEV_NETWORK: Final = "dev"
DEV_CHAIN_ID: Final = 2018
DEFAULT_DEV_FORK: Final = "osaka"

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


@dataclass(frozen=True, slots=True)
class DevAccount:
    """A funded account of the development network with its published key."""

    address: Address
    private_key: bytes
    balance: int


DEV_ACCOUNTS: Final = (
    DevAccount(
        bytes.fromhex("fe3b557e8fb62b89f4916b721be55ceb828dbd73"),
        bytes.fromhex("8f2a55949038a9610f50fb23b5883af3b4ecb3c3bb792cbcefbd1542c692be63"),
        200 * 10**18,
    ),
    DevAccount(
        bytes.fromhex("627306090abab3a6e1400e9345bc60c78a8bef57"),
        bytes.fromhex("c87509a1c067bbde78beb793e6fa76530b6382a4c0241e5e4a9ec0a0f44dc0d3"),
        90_000 * 10**18,
    ),
    DevAccount(
        bytes.fromhex("f17f52151ebef6c7334fad080c5704d77216b732"),
        bytes.fromhex("ae6ae8e5ccbfb04590405997ee2d52d2b330726137b875053c36d94e974d162f"),
        90_000 * 10**18,
    ),
)

# (value of --dev-fork, configuration key that makes it the latest fork at genesis)
_FORK_KEYS: Final = {
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
DEV_FORKS: Final = tuple(_FORK_KEYS)
"""Values of `--dev-fork`."""


def dev_genesis(fork: str = DEFAULT_DEV_FORK) -> Genesis:
    """The development network with every fork up to the named one active from genesis."""
    return parse_genesis(json.dumps(_document(fork.lower())), is_dev=True)


def network_genesis(name: str, dev_fork: str = DEFAULT_DEV_FORK) -> Genesis:
    """The genesis of a built-in network; public networks are refused by name."""
    folded = name.lower()
    if folded == DEV_NETWORK:
        return dev_genesis(dev_fork)
    if folded in PUBLIC_NETWORKS:
        raise GenesisError(
            f"Network {name} is a public network, and this node is for private ones: use --network=dev or give a "
            "--genesis-file."
        )
    raise GenesisError(f"Unknown network {name}: the built-in network is dev; others need a --genesis-file.")


def _document(fork: str) -> dict[str, Any]:
    if fork not in _FORK_KEYS:
        raise GenesisError(f"Unknown fork {fork} for the dev network: one of {', '.join(DEV_FORKS)}.")
    config: dict[str, Any] = {"chainId": DEV_CHAIN_ID}
    for name, key in _FORK_KEYS.items():
        if key is not None:
            config[key] = 0
        if name == fork:
            break
    config["daoForkBlock"] = 0
    config["contractSizeLimit"] = 2147483647
    config["ethash"] = {"fixeddifficulty": 100}
    document: dict[str, Any] = {
        "config": config,
        "nonce": "0x42",
        "timestamp": "0x0",
        "extraData": "0x11bbe8db4e347b4e8c937c1c8370e4b5ed33adb3db69cbdb7a38e1e50b1b82fa",
        "gasLimit": "0x1fffffffffffff",
        "difficulty": "0x10000",
        "alloc": {account.address.hex(): {"balance": str(account.balance)} for account in DEV_ACCOUNTS},
    }
    milestone = Milestone[fork.upper()]
    for contract in SYSTEM_CONTRACTS:
        if milestone >= contract.since:
            document["alloc"][contract.address.hex()] = {"nonce": "0x1", "code": contract.code.hex()}
    if milestone >= Milestone.LONDON:
        config["zeroBaseFee"] = True
        document["baseFeePerGas"] = "0x0"
    return document
