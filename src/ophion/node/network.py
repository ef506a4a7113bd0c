"""The network of a node: the built-in development network, or the network of a genesis file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ophion.chainspec.network_names import DEFAULT_DEV_FORK, DEV_FORKS, DEV_NETWORK, check_network
from ophion.errors import GenesisError
from ophion.runtime.operator_files import content_of
from ophion.runtime.options import Options, at_least, option

if TYPE_CHECKING:
    from ophion.chainspec.dev_network import DevAccount
    from ophion.chainspec.genesis import Genesis

_MAX_GENESIS_BYTES = 1024 * 1024 * 1024
"""Maximum size of a genesis file in bytes. This size suffices for some million accounts with storage."""

_EXCLUSIVE = (
    "--network option and --genesis-file option can't be used at the same time.  Please refer to CLI reference for more"
    " details about this constraint."
)


def _network(text: str) -> str:
    try:
        check_network(text)
    except GenesisError as error:
        raise ValueError(str(error)) from None
    return text.lower()


def _dev_fork(text: str) -> str:
    if text.lower() not in DEV_FORKS:
        raise ValueError(f"expected one of [{', '.join(DEV_FORKS)}] (case-insensitive) but was '{text}'")
    return text.lower()


def _override(text: str) -> tuple[str, int]:
    name, _, value = text.partition("=")
    if not name or not value.isdecimal():
        raise ValueError(f"expected NAME=NUMBER but was '{text}'")
    return name.strip(), int(value)


class NetworkConfig(Options):
    """Network: the genesis file, or the built-in development network."""

    network: str | None = option(
        "--network", default=None, metavar="NAME", parse=_network, help="A built-in network. (default: dev)"
    )
    genesis_file: Path | None = option(
        "--genesis-file", default=None, help="Genesis file of a private network; replaces --network."
    )
    dev_fork: str | None = option(
        "--dev-fork",
        default=None,
        metavar="FORK",
        parse=_dev_fork,
        help=f"Latest fork of the dev network, active from its genesis. (default: {DEFAULT_DEV_FORK})",
    )
    dev_chain_id: int | None = option(
        "--dev-chain-id", default=None, check=at_least(1), help="Chain id of the dev network. (default: 2018)"
    )
    dev_unlocked: bool = option(
        "--dev-unlocked-accounts",
        default=False,
        help="Dev network: sign for its accounts, whose keys are public (eth_sendTransaction, eth_sign, ...).",
    )
    network_id: int | None = option(
        "--network-id", default=None, check=at_least(0), help="Network id sent to peers. (default: the chain id)"
    )
    overrides: tuple[tuple[str, int], ...] = option(
        "--override-genesis-config",
        default=(),
        metavar="NAME=NUMBER",
        parse=_override,
        hidden=True,
        help="Replace numbers in the config object of the genesis, such as the chain id.",
    )

    def problems(self) -> Iterable[str]:
        if self.network is not None and self.genesis_file is not None:
            yield _EXCLUSIVE
        elif self.genesis_file is not None and not self.genesis_file.exists():
            yield f"Unable to load genesis file. {self.genesis_file}: No such file or directory"
        if self.dev_fork is not None and self.genesis_file is not None:
            yield "--dev-fork belongs to --network=dev and can't be used with --genesis-file."
        if self.dev_unlocked and self.genesis_file is not None:
            yield "--dev-unlocked-accounts belongs to --network=dev and can't be used with --genesis-file."

    @property
    def name(self) -> str | None:
        """Return the name of the built-in network, or None for a genesis file."""
        return None if self.genesis_file is not None else self.network or DEV_NETWORK

    @property
    def accounts(self) -> tuple[DevAccount, ...]:
        """Return the funded accounts with published private keys. Only the development network has such accounts."""
        # lazy import: a command that reads no genesis starts faster
        from ophion.chainspec.dev_network import dev_accounts

        return dev_accounts(self.dev_fork or DEFAULT_DEV_FORK) if self.name == DEV_NETWORK else ()

    @property
    def dev_overrides(self) -> tuple[tuple[str, int], ...]:
        """Keys of the genesis `config` that options replace on the development network."""
        chain_id = () if self.dev_chain_id is None else (("chainId", self.dev_chain_id),)
        return (*chain_id, *self.overrides)


def is_default_genesis(config: NetworkConfig) -> bool:
    """Return whether no option chooses the genesis."""
    return config.genesis_file is None and config.dev_fork is None and not config.dev_overrides


def load_genesis(config: NetworkConfig) -> Genesis:
    """Load the genesis that the options choose. A `GenesisError` names the file and the problem."""
    # lazy import: a command that reads no genesis starts faster
    from ophion.chainspec.dev_network import dev_genesis
    from ophion.chainspec.genesis import parse_genesis

    if config.genesis_file is None:
        return dev_genesis(config.dev_fork or DEFAULT_DEV_FORK, config.dev_overrides)
    try:
        text = content_of(config.genesis_file, _MAX_GENESIS_BYTES)
    except OSError as error:
        raise GenesisError(f"Unable to load genesis file. {config.genesis_file}: {error.strerror}") from error
    except ValueError as error:
        raise GenesisError(f"Unable to load genesis file. {config.genesis_file}: {error}") from error
    try:
        return parse_genesis(text, overrides=config.overrides)
    except GenesisError as error:
        raise GenesisError(f"{config.genesis_file}: {error}", error.place) from error
