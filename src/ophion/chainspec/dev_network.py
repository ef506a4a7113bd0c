"""The built-in development network.

`--dev-fork=petersburg` gives the genesis of Pantheon 1.2, with the same hash: chain id 2018, ethash with fixed
difficulty 100, three funded accounts. By default all forks to Osaka are active from the start, and the ten accounts of
other development nodes are funded as well.

The base fee starts at 7 wei and stays there, because an eighth of 7 wei rounds to 0 and no block fills half of the gas
limit. The base fee is above 0, because libraries take a chain with base fee 0 for a chain without EIP-1559.

The keys of the accounts are public, for tests only.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from msgspec import Struct

from ophion.chainspec.forks import Milestone
from ophion.chainspec.genesis import Genesis, parse_genesis
from ophion.chainspec.network_names import DEFAULT_DEV_FORK, DEV_FORKS, FORK_KEYS
from ophion.chainspec.system_contracts import SYSTEM_CONTRACTS
from ophion.errors import GenesisError
from ophion.primitives.types import Address

DEV_CHAIN_ID: Final = 2018
CREATE2_DEPLOYER: Final = {
    "4e59b44847b379578588920ca78fbf26c0b4956c": {
        "balance": "0",
        "code": "0x7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0"
        "3601600081602082378035828234f58015156039578182fd5b8082525050506014600cf3",
    }
}
"""Genesis entry of the CREATE2 deployer. Tools expect it at the same address on every chain."""


class DevAccount(Struct, frozen=True):
    """A funded account of the development network with its public test key."""

    address: Address
    private_key: bytes
    balance: int


ORIGINAL_ACCOUNTS: Final = (
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
"""Accounts of Pantheon's development network."""

MNEMONIC: Final = "test test test test test test test test test test test junk"
MNEMONIC_ACCOUNTS: Final = tuple(
    DevAccount(bytes.fromhex(address), bytes.fromhex(private_key), 10_000 * 10**18)
    for address, private_key in (
        (
            "f39fd6e51aad88f6f4ce6ab8827279cfffb92266",
            "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
        ),
        (
            "70997970c51812dc3a010c7d01b50e0d17dc79c8",
            "59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
        ),
        (
            "3c44cdddb6a900fa2b585dd299e03d12fa4293bc",
            "5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
        ),
        (
            "90f79bf6eb2c4f870365e785982e1f101e93b906",
            "7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6",
        ),
        (
            "15d34aaf54267db7d7c367839aaf71a00a2c6a65",
            "47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a",
        ),
        (
            "9965507d1a55bcc2695c58ba16fb37d819b0a4dc",
            "8b3a350cf5c34c9194ca85829a2df0ec3153be0318b5e2d3348e872092edffba",
        ),
        (
            "976ea74026e726554db657fa54763abd0c3a0aa9",
            "92db14e403b83dfe3df233f83dfa3a0d7096f21ca9b0d6d6b8d88b2b4ec1564e",
        ),
        (
            "14dc79964da2c08b23698b3d3cc7ca32193d9955",
            "4bbbf85ce3377467afe5d46f804f221813b2bb87f24d81f60f1fcdbf7cbf4356",
        ),
        (
            "23618e81e3f5cdf7f54c3d65f7fbc0abf5b21e8f",
            "dbda1821b80551c9d65939329250298aa3472ba22feea921c0cf5d620ea67b97",
        ),
        (
            "a0ee7a142d267c1f36714e4a8f75612f20a79720",
            "2a871d0798f97d79848a013d4936a73bf4cc922c825d33c1cf7073dff6d409c6",
        ),
    )
)
"""The first ten accounts of the test mnemonic that other development nodes use, at m/44'/60'/0'/0/n."""

DEV_ACCOUNTS: Final = (*MNEMONIC_ACCOUNTS, *ORIGINAL_ACCOUNTS)
"""All accounts in the order of `eth_accounts`. The mnemonic's accounts come first, because tools use the first account.
"""

_BASE_FEE: Final = 7


def dev_accounts(fork: str = DEFAULT_DEV_FORK) -> tuple[DevAccount, ...]:
    """Return the funded accounts of the development network. Forks up to Petersburg have only the accounts of Pantheon
    1.2.
    """
    return DEV_ACCOUNTS if Milestone[fork.upper()] > Milestone.PETERSBURG else ORIGINAL_ACCOUNTS


def dev_genesis(fork: str = DEFAULT_DEV_FORK, overrides: Iterable[tuple[str, int]] = ()) -> Genesis:
    """Return the development network with every fork up to `fork` active from genesis.

    `overrides` replace keys of the genesis `config`, such as the chain id.
    """
    return parse_genesis(json.dumps(_document(fork.lower())), is_dev=True, overrides=overrides)


def dev_document(fork: str = DEFAULT_DEV_FORK) -> dict[str, Any]:
    """Return the genesis file of the development network as an object. Presets change this object."""
    return _document(fork.lower())


def _document(fork: str) -> dict[str, Any]:
    if fork not in FORK_KEYS:
        raise GenesisError(f"Unknown fork {fork} for the dev network: one of {', '.join(DEV_FORKS)}.")
    config: dict[str, Any] = {"chainId": DEV_CHAIN_ID}
    for name, key in FORK_KEYS.items():
        if key is not None:
            config[key] = 0
        if name == fork:
            break
    if "eip158Block" in config:
        config["eip155Block"] = 0  # the key has no effect on rules, but admin_nodeInfo shows it
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
        "alloc": {account.address.hex(): {"balance": str(account.balance)} for account in dev_accounts(fork)},
    }
    milestone = Milestone[fork.upper()]
    for contract in SYSTEM_CONTRACTS:
        if milestone >= contract.since:
            document["alloc"][contract.address.hex()] = {"nonce": "0x1", "code": contract.code.hex()}
    if milestone >= Milestone.LONDON:
        document["baseFeePerGas"] = hex(_BASE_FEE)
    return document
