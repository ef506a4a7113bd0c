"""Formats the text that a node prints to a terminal at startup."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from ophion import __version__
from ophion.chainspec.dev_network import MNEMONIC, MNEMONIC_ACCOUNTS, DevAccount
from ophion.primitives.header import Header
from ophion.primitives.types import WEI_PER_ETHER, Hash32
from ophion.rpc.schema.render import checksum_address


class StartupSummary(Struct, frozen=True):
    """Values of a running node that the startup text shows."""

    endpoints: Mapping[str, str]
    """URL of each service, by service name."""
    network: str
    chain_id: int
    accounts: Sequence[DevAccount]
    """Accounts of the development network, whose private keys are public; empty on other networks."""
    is_mining: bool
    head: int
    data_path: Path
    is_temporary: bool


def banner(summary: StartupSummary) -> str:
    """Return the startup text."""
    return "\n".join(_lines(summary)) + "\n"


class ForkSummary(Struct, frozen=True):
    """The forked chain and block."""

    url: str
    number: int
    hash: Hash32
    chain_id: int


class DevSummary(Struct, frozen=True):
    """Values of a node with the preset of Anvil, which its startup text shows."""

    addresses: Sequence[str]
    """Host and port of each address on which JSON-RPC listens."""
    chain_id: int
    accounts: Sequence[DevAccount]
    mnemonic: str
    derivation_path: str
    genesis: Header
    fork: ForkSummary | None = None


def anvil_banner(summary: DevSummary) -> str:
    """Return the startup text in the form of Anvil, because tools wait for its line `Listening on …`."""
    accounts = [
        f"({place}) {checksum_address(one.address)} ({_ether(one.balance)} ETH)"
        for place, one in enumerate(summary.accounts)
    ]
    keys = [f"({place}) 0x{one.private_key.hex()}" for place, one in enumerate(summary.accounts)]
    wallet = [f"Mnemonic:          {summary.mnemonic}", f"Derivation path:   {summary.derivation_path}"]
    header = summary.genesis
    blocks = [
        ("Available Accounts", accounts),
        ("Private Keys", keys),
        ("Wallet", wallet),
        *([] if summary.fork is None else [("Fork", _fork(summary.fork))]),
        ("Chain ID", [str(summary.chain_id)]),
        ("Base Fee", [str(header.base_fee_per_gas or 0)]),
        ("Gas Limit", [str(header.gas_limit)]),
        ("Genesis Timestamp", [str(header.timestamp)]),
        ("Genesis Number", [str(header.number)]),
    ]
    lines = [f"Ophion {__version__}, options and methods of Anvil 1.7.1", ""]
    for title, values in blocks:
        lines += [title, "=" * 18, "", *values, ""]
    return "\n".join([*lines, *(f"Listening on {address}" for address in summary.addresses)]) + "\n"


def _fork(fork: ForkSummary) -> list[str]:
    return [
        f"Endpoint:       {fork.url}",
        f"Block number:   {fork.number}",
        f"Block hash:     0x{fork.hash.hex()}",
        f"Chain ID:       {fork.chain_id}",
    ]


def _ether(wei: int) -> str:
    return f"{wei // WEI_PER_ETHER}.{wei % WEI_PER_ETHER:018}"


def _lines(summary: StartupSummary) -> Iterator[str]:
    yield f"Ophion {__version__}"
    yield ""
    for service, url in summary.endpoints.items():
        yield f"  {service:<11}{url}"
    yield f"  {'Network':<11}{summary.network}, chain id {summary.chain_id} ({summary.chain_id:#x})"
    yield f"  {'Head':<11}block {summary.head}, {'mining' if summary.is_mining else 'not mining'}"
    removed = " (removed when the node stops)" if summary.is_temporary else ""
    yield f"  {'Data':<11}{summary.data_path}{removed}"
    if summary.accounts:
        yield from _accounts(summary.accounts)
    yield ""


def _accounts(accounts: Sequence[DevAccount]) -> Iterator[str]:
    """Yield one line per account: address, key and balance at genesis."""
    yield ""
    yield "  Accounts with funds. These keys are public test keys: never use them for anything of value."
    if MNEMONIC_ACCOUNTS[0] in accounts:
        yield f"  The first {len(MNEMONIC_ACCOUNTS)} are those of the mnemonic {MNEMONIC!r}."
    yield ""
    for account in accounts:
        ether = account.balance // WEI_PER_ETHER
        yield f"  0x{account.address.hex()}  0x{account.private_key.hex()}  {ether:>6} ether"
