"""What a person at a terminal looks for when a node has started."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ophion import __version__
from ophion.chainspec.dev import DEV_ACCOUNTS
from ophion.primitives.types import WEI_PER_ETHER


@dataclass(frozen=True, slots=True)
class Summary:
    """The facts of a running node."""

    endpoints: Mapping[str, str]
    """Service to URL."""
    network: str
    chain_id: int
    is_dev: bool
    is_mining: bool
    head: int
    data_path: Path
    is_temporary: bool


def banner(summary: Summary) -> str:
    """The lines to show."""
    return "\n".join(_lines(summary)) + "\n"


def _lines(summary: Summary) -> Iterator[str]:
    yield f"Ophion {__version__}"
    yield ""
    for service, url in summary.endpoints.items():
        yield f"  {service:<11}{url}"
    yield f"  {'Network':<11}{summary.network}, chain id {summary.chain_id} ({summary.chain_id:#x})"
    yield f"  {'Head':<11}block {summary.head}, {'mining' if summary.is_mining else 'not mining'}"
    removed = " (removed when the node stops)" if summary.is_temporary else ""
    yield f"  {'Data':<11}{summary.data_path}{removed}"
    if summary.is_dev:
        yield ""
        yield "  Accounts with funds. These keys are public test keys: never use them for anything of value."
        for account in DEV_ACCOUNTS:
            yield ""
            yield f"    address      0x{account.address.hex()}  ({account.balance // WEI_PER_ETHER} ether at genesis)"
            yield f"    private key  0x{account.private_key.hex()}"
    yield ""
