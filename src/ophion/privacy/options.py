"""Options of private transactions. Options of the enclave are in `ophion.enclave`."""

from __future__ import annotations

from pathlib import Path

from ophion.primitives.types import Address
from ophion.runtime.options import Options, between, option

DEFAULT_PRECOMPILE = 126
DEFAULT_MAX_GAS = 50_000_000


class PrivacyConfig(Options):
    """Private transactions: markers, groups, gas limit and tenants."""

    enabled: bool = option("--privacy-enabled", default=False, help="Send and execute private transactions.")
    precompiled_address: int = option(
        "--privacy-precompiled-address",
        default=DEFAULT_PRECOMPILE,
        check=between(10, 65535),
        needs="--privacy-enabled",
        help="Number of the precompiled contract that marker transactions call.",
    )
    marker_key_file: Path | None = option(
        "--privacy-marker-transaction-signing-key-file",
        default=None,
        needs="--privacy-enabled",
        help="Key that signs marker transactions. (default: a random key for each)",
    )
    multi_tenancy: bool = option(
        "--privacy-multi-tenancy-enabled",
        default=False,
        needs="--privacy-enabled",
        help="Let several owners of enclave keys share this node; the token of a request identifies the owner.",
    )
    always_increments: bool = option(
        "--privacy-nonce-always-increments",
        default=False,
        needs="--privacy-enabled",
        help="A private transaction that fails uses up its nonce. All members must use the same setting.",
    )
    flexible: bool = option(
        "--privacy-flexible-groups-enabled",
        "--privacy-onchain-groups-enabled",
        default=False,
        needs="--privacy-enabled",
        help="Use flexible groups, whose member list is in a contract. All members must use the same setting.",
    )
    max_gas: int = option(
        "--privacy-max-transaction-gas",
        default=DEFAULT_MAX_GAS,
        check=between(21_000, 1_000_000_000),
        needs="--privacy-enabled",
        help="Highest gas limit of a private transaction that this node accepts and executes. A group with a higher one"
        " is suspended until the option is raised; results never depend on it.",
    )
    migration: bool = option(
        "--privacy-enable-database-migration",
        default=False,
        needs="--privacy-enabled",
        hidden=True,
        help="Accepted for old command lines; there is nothing to migrate.",
    )

    @property
    def precompile(self) -> Address:
        """Address of the privacy precompile, which marker transactions call."""
        return self.precompiled_address.to_bytes(20, "big")
