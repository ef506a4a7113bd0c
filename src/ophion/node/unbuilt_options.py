"""Options of features that this version does not have.

Their main switches stop the node with one line that says so: running without a feature that an operator relies on would
be worse. Everything that only tunes such a feature is accepted, so that command lines and files written for it work.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ophion.primitives.types import Address
from ophion.runtime.options import at_least, between, option, read_address


@dataclass(frozen=True, slots=True)
class PermissionConfig:
    """Permissioning."""

    nodes_file_enabled: bool = option(
        "--permissions-nodes-config-file-enabled", default=False, help="Peer with listed nodes only."
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
        help="The contract that knows permitted nodes.",
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
        help="The contract that knows permitted accounts.",
    )

    @property
    def is_used(self) -> bool:
        """Whether any kind of permissioning is switched on."""
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
        switches = (
            (self.nodes_file_enabled, "--permissions-nodes-config-file-enabled"),
            (self.accounts_file_enabled, "--permissions-accounts-config-file-enabled"),
            (self.nodes_contract_enabled and self.nodes_contract, "--permissions-nodes-contract-enabled"),
            (self.accounts_contract_enabled and self.accounts_contract, "--permissions-accounts-contract-enabled"),
        )
        for is_on, flag in switches:
            if is_on:
                yield f"{flag}: permissioning is not part of this version of Ophion."

    def warnings(self) -> Iterator[str]:
        pairs = (
            (self.nodes_contract, self.nodes_contract_enabled, "--permissions-nodes-contract"),
            (self.accounts_contract, self.accounts_contract_enabled, "--permissions-accounts-contract"),
        )
        for address, is_enabled, flag in pairs:
            if address is not None and not is_enabled:
                yield f"{flag}-address is set but {flag}-enabled is not: the contract is not asked."


@dataclass(frozen=True, slots=True)
class PrivacyConfig:
    """Private transactions."""

    enabled: bool = option("--privacy-enabled", default=False, help="Send and execute private transactions.")
    url: str = option("--privacy-url", default="http://localhost:8888", needs="--privacy-enabled", help="The enclave.")
    public_key_file: Path | None = option(
        "--privacy-public-key-file",
        default=None,
        needs="--privacy-enabled",
        help="This node's public key in the enclave.",
    )
    precompiled_address: int = option(
        "--privacy-precompiled-address",
        default=126,
        check=between(10, 65535),
        needs="--privacy-enabled",
        help="Number of the precompiled contract that marker transactions call.",
    )
    marker_key_file: Path | None = option(
        "--privacy-marker-transaction-signing-key-file",
        default=None,
        needs="--privacy-enabled",
        help="Key that signs marker transactions; a random one each otherwise.",
    )

    def problems(self) -> Iterator[str]:
        if self.enabled and self.public_key_file is None:
            yield "Please specify Enclave public key file path to enable privacy"
        elif self.enabled:
            yield "--privacy-enabled: private transactions are not part of this version of Ophion."


@dataclass(frozen=True, slots=True)
class PruningConfig:
    """Pruning."""

    enabled: bool = option("--pruning-enabled", default=False, hidden=True, help="Forget old states.")
    blocks_retained: int = option(
        "--pruning-blocks-retained",
        default=1024,
        check=at_least(1),
        hidden=True,
        needs="--pruning-enabled",
        help="Blocks whose states are kept.",
    )
    block_confirmations: int = option(
        "--pruning-block-confirmations",
        default=10,
        check=at_least(1),
        hidden=True,
        needs="--pruning-enabled",
        help="Blocks after which a state may be marked.",
    )

    def problems(self) -> Iterator[str]:
        if self.enabled:
            yield "--pruning-enabled: every state is kept; pruning is not part of this version of Ophion."
