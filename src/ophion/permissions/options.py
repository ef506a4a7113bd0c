"""Options of permissioning (operations.md 1.1, 10, 11)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ophion.primitives.types import Address
from ophion.runtime.options import Options, between, option, read_address

DEFAULT_FILE: Final = "permissions_config.toml"
"""Name of the default file in the data path, for both lists."""


class PermissionConfig(Options):
    """Permissioning: files and contracts that list permitted nodes and accounts."""

    nodes_file_enabled: bool = option(
        "--permissions-nodes-config-file-enabled", default=False, help="Connect to listed nodes only."
    )
    nodes_file: Path | None = option(
        "--permissions-nodes-config-file",
        default=None,
        help="List of permitted nodes. (default: permissions_config.toml in the data path)",
    )
    accounts_file_enabled: bool = option(
        "--permissions-accounts-config-file-enabled",
        default=False,
        help="Accept transactions of listed accounts only.",
    )
    accounts_file: Path | None = option(
        "--permissions-accounts-config-file",
        default=None,
        help="List of permitted accounts. (default: permissions_config.toml in the data path)",
    )
    nodes_contract_enabled: bool = option(
        "--permissions-nodes-contract-enabled", default=False, help="Ask a contract which nodes are permitted."
    )
    nodes_contract: Address | None = option(
        "--permissions-nodes-contract-address",
        default=None,
        parse=read_address,
        metavar="ADDRESS",
        help="Address of the contract that lists permitted nodes.",
    )
    nodes_contract_version: int = option(
        "--permissions-nodes-contract-version",
        default=1,
        check=between(1, 2),
        help="Interface of the node contract: 1 decides about pairs of nodes, 2 about single nodes.",
    )
    accounts_contract_enabled: bool = option(
        "--permissions-accounts-contract-enabled",
        default=False,
        help="Ask a contract which accounts are permitted.",
    )
    accounts_contract: Address | None = option(
        "--permissions-accounts-contract-address",
        default=None,
        parse=read_address,
        metavar="ADDRESS",
        help="Address of the contract that lists permitted accounts.",
    )
    accounts_contract_at_admission: bool = option(
        "--permissions-accounts-contract-at-admission",
        default=False,
        help="Call the contract for each transaction that a client sends, and refuse it at once, as Besu 21.10 and"
        " newer does; otherwise block building drops it. `ophion besu` sets it.",
    )

    @property
    def is_used(self) -> bool:
        """Whether any kind of permissioning is on."""
        return (
            self.nodes_file_enabled
            or self.accounts_file_enabled
            or self.nodes_contract_enabled
            or self.accounts_contract_enabled
        )

    def problems(self) -> Iterator[str]:
        if self.nodes_contract_enabled and self.nodes_contract is None:
            yield (
                "No node permissioning contract address specified. Cannot enable smart contract based node"
                " permissioning."
            )
        if self.accounts_contract_enabled and self.accounts_contract is None:
            yield (
                "No account permissioning contract address specified. Cannot enable smart contract based account"
                " permissioning."
            )

    def warnings(self) -> Iterator[str]:
        pairs = (
            (self.nodes_contract, self.nodes_contract_enabled, "--permissions-nodes-contract"),
            (self.accounts_contract, self.accounts_contract_enabled, "--permissions-accounts-contract"),
        )
        for address, is_enabled, flag in pairs:
            if address is not None and not is_enabled:
                yield f"{flag}-address is set but {flag}-enabled is not: the contract is not used."
