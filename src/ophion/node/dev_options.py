"""Options of the development network. `NetworkConfig` has the options of its chain."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path

from ophion import __version__
from ophion.chainspec.dev_network import MNEMONIC, MNEMONIC_ACCOUNTS, DevAccount
from ophion.dev.fork.settings import DEFAULT_BACKOFF_S, DEFAULT_RETRIES, DEFAULT_TIMEOUT_S, ForkSettings
from ophion.runtime.options import Options, at_least, between, hex_bytes, is_url, option

_DEFAULT_PATH = "m/44'/60'/0'/0/"
_WEI = 10**18
_MAX_TIMESTAMP = 2**40 - 1
"""Latest time of the genesis block, far below 64 bits, because later blocks have later times."""
_MAX_NUMBER = 2**53 - 1
"""Highest number of the genesis block, far below 63 bits, because later blocks have higher numbers."""
_HEADER = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+[ \t]*:[\t -~]*"
"""An HTTP header: a name of token characters, and a value of printable ASCII characters."""
_SUGGESTED_TIP = 1_000_000_000
_ANVIL_VERSION = "anvil/v1.7.1"
_HARDHAT_VERSION = "HardhatNetwork/2.26.3"


class DevPreset(Enum):
    """The tool whose defaults a development node uses."""

    ANVIL = "anvil"
    HARDHAT = "hardhat"


class DevOrder(Enum):
    """Order of transactions in a block."""

    FEES = "fees"
    FIFO = "fifo"


class DevConfig(Options):
    """Development network: accounts, mining, fork and state files of a development node."""

    preset: DevPreset | None = option(
        "--dev-preset",
        default=None,
        help="Dev network: chain, accounts and name of Anvil or of Hardhat's node. (default: this node's own)",
    )
    mnemonic: str | None = option(
        "--dev-mnemonic", default=None, metavar="WORDS", help="Dev network: words from which accounts are derived."
    )
    derivation_path: str = option(
        "--dev-derivation-path",
        default=_DEFAULT_PATH,
        metavar="PATH",
        help="Dev network: derivation path of the accounts; the index of the account is appended.",
    )
    account_count: int | None = option(
        "--dev-accounts",
        default=None,
        check=between(0, 10_000),
        help="Dev network: how many accounts are derived. (default: 10; 20 with the preset hardhat)",
    )
    balance: float | None = option(
        "--dev-balance", default=None, metavar="ETHER", help="Dev network: ether of each account. (default: 10000)"
    )
    timestamp: int | None = option(
        "--dev-timestamp",
        default=None,
        check=between(0, _MAX_TIMESTAMP),
        help="Dev network: timestamp of the genesis block.",
    )
    genesis_number: int | None = option(
        "--dev-genesis-number",
        default=None,
        check=between(0, _MAX_NUMBER),
        help="Dev network: number of the genesis block. (default: 0)",
    )
    gas_limit: int | None = option(
        "--dev-gas-limit", default=None, check=between(5000, 2**63 - 1), help="Dev network: gas limit of blocks."
    )
    base_fee: int | None = option(
        "--dev-base-fee",
        default=None,
        check=between(0, 2**64 - 1),
        metavar="WEI",
        help="Dev network: base fee of the genesis.",
    )
    code_size_limit: int | None = option(
        "--dev-code-size-limit",
        default=None,
        check=at_least(1),
        help="Dev network: maximum bytes of a contract's code.",
    )
    automine: bool = option(
        "--dev-automine", default=True, help="Dev network: make a block as soon as there are transactions."
    )
    mines_both: bool = option(
        "--dev-mixed-mining",
        default=False,
        help="Dev network: with --block-period, also make a block as soon as there are transactions.",
    )
    order: DevOrder = option("--dev-order", default=DevOrder.FEES, help="Dev network: order of transactions in blocks.")
    impersonates_all: bool = option(
        "--dev-auto-impersonate", default=False, help="Dev network: accept unsigned transactions of all accounts."
    )
    load_state: Path | None = option(
        "--dev-load-state", default=None, help="Dev network: state file in Anvil's format, read at the start."
    )
    dump_state: Path | None = option(
        "--dev-dump-state", default=None, help="Dev network: state file that is written at the end."
    )
    state_interval_s: float | None = option(
        "--dev-state-interval",
        default=None,
        check=at_least(0.001),
        metavar="SECONDS",
        help="Dev network: also write the state file at this interval.",
    )
    ipc_path: Path | None = option(
        "--dev-ipc-path", default=None, help="Dev network: Unix socket for JSON-RPC, which only this user can open."
    )
    init_file: Path | None = option(
        "--dev-init-file",
        default=None,
        help="Dev network: genesis file whose accounts, chain id and header are added to those of the preset.",
    )
    has_create2_deployer: bool = option(
        "--dev-create2-deployer", default=True, help="Dev network: a preset starts with the CREATE2 deployer."
    )
    epoch_slots: int | None = option(
        "--dev-epoch-slots",
        default=None,
        check=at_least(0),
        help="Dev network: blocks from the head to `safe`, and from `safe` to `finalized`. (default: 0)",
    )
    priority_fee: int | None = option(
        "--dev-priority-fee",
        default=None,
        check=between(0, 2**64 - 1),
        metavar="WEI",
        help="Dev network: priority fee that is suggested to clients. (default: 1 gwei with a preset)",
    )
    has_gas_cap: bool = option(
        "--dev-transaction-gas-cap", default=False, help="Dev network: enforce the gas limit of EIP-7825."
    )
    shows_console: bool = option(
        "--dev-console-enabled", default=True, help="Dev network: show the output of console.log in the log."
    )
    prints_traces: bool = option(
        "--dev-print-traces", default=False, help="Dev network: show the call tree of every transaction and call."
    )
    fork_urls: tuple[str, ...] = option(
        "--dev-fork-url",
        default=(),
        metavar="URL",
        help="Dev network: continue the chain of this node (http or https) from one of its blocks. Further URLs are"
        " asked when it does not answer.",
    )
    fork_block: int | None = option(
        "--dev-fork-block-number",
        default=None,
        help="Dev network: block of the other chain to continue from; -N is N blocks before its latest. (default: its"
        " latest)",
    )
    fork_transaction: bytes | None = option(
        "--dev-fork-transaction",
        default=None,
        parse=hex_bytes(32, 32, "a hash: expected 64 hex digits"),
        metavar="HASH",
        help="Dev network: continue the other chain right after this transaction.",
    )
    fork_retries: int = option(
        "--dev-fork-retries",
        default=DEFAULT_RETRIES,
        check=at_least(0),
        help="Dev network: retries of a fork's requests.",
    )
    fork_backoff_ms: int = option(
        "--dev-fork-retry-backoff",
        default=int(1000 * DEFAULT_BACKOFF_S),
        check=at_least(0),
        metavar="MILLISECONDS",
        help="Dev network: wait before the first retry of a fork's request; it doubles with each.",
    )
    fork_timeout_ms: int = option(
        "--dev-fork-timeout",
        default=int(1000 * DEFAULT_TIMEOUT_S),
        check=at_least(1),
        metavar="MILLISECONDS",
        help="Dev network: timeout of a fork's requests.",
    )
    fork_headers: tuple[str, ...] = option(
        "--dev-fork-header", default=(), metavar="HEADER", help="Dev network: HTTP headers of a fork's requests."
    )
    fork_cache: bool = option(
        "--dev-fork-cache-enabled", default=True, help="Dev network: keep what a fork has fetched for the next run."
    )
    fork_cache_path: Path | None = option(
        "--dev-fork-cache-path",
        default=None,
        help="Dev network: folder for what forks have fetched. (default: ophion/fork in the user's cache folder)",
    )
    artifacts: Path | None = option(
        "--dev-artifacts",
        default=None,
        metavar="DIR",
        help="Dev network: compiled contracts of Hardhat, Foundry or solc, for names, errors and source lines.",
    )
    config_out: Path | None = option(
        "--dev-config-out", default=None, help="Dev network: write accounts, keys and chain to this JSON file."
    )

    @property
    def is_used(self) -> bool:
        """Whether the options change the genesis of the built-in network."""
        given = (self.preset, self.mnemonic, self.account_count, self.balance, self.timestamp, self.gas_limit)
        others = (self.base_fee, self.code_size_limit, self.init_file, self.fork_urls or None)
        return any(one is not None for one in (*given, *others)) or self.derivation_path != _DEFAULT_PATH

    @property
    def fork(self) -> ForkSettings | None:
        """Source, block and cache of the chain to fork, or None."""
        if not self.fork_urls:
            return None
        folder = self.fork_cache_path or _user_cache() / "ophion" / "fork"
        url, number = ForkSettings.split(self.fork_urls[0])
        return ForkSettings(
            url=url,
            transaction=self.fork_transaction,
            other_urls=tuple(ForkSettings.split(other)[0] for other in self.fork_urls[1:]),
            block_number=number if self.fork_block is None else self.fork_block,
            retries=self.fork_retries,
            backoff_s=self.fork_backoff_ms / 1000,
            timeout_s=self.fork_timeout_ms / 1000,
            headers=self.fork_headers,
            cache_path=folder if self.fork_cache else None,
        )

    @property
    def suggested_tip(self) -> int | None:
        """Priority fee that is suggested to clients; if None, the median of recent blocks."""
        default = None if self.preset is None else _SUGGESTED_TIP
        return default if self.priority_fee is None else self.priority_fee

    @property
    def is_merged(self) -> bool:
        """Whether blocks have neither reward nor difficulty, like blocks after the merge."""
        return self.preset is not None

    @property
    def client_version(self) -> str | None:
        """Return the client version by which tools recognise a node with cheat codes, or None for Ophion's own
        version.
        """
        if self.preset is None:
            return None
        name = _ANVIL_VERSION if self.preset is DevPreset.ANVIL else _HARDHAT_VERSION
        return f"{name}/ophion/{__version__}"

    @property
    def accounts(self) -> tuple[DevAccount, ...] | None:
        """Return the accounts of the configured mnemonic, or None for the default accounts."""
        chosen = (self.preset, self.mnemonic, self.account_count, self.balance)
        if all(one is None for one in chosen) and self.derivation_path == _DEFAULT_PATH:
            return None
        default = 20 if self.preset is DevPreset.HARDHAT else 10
        count = default if self.account_count is None else self.account_count
        wei = 10_000 * _WEI if self.balance is None else int(self.balance * _WEI)
        if (
            self.mnemonic in (None, MNEMONIC)
            and count <= len(MNEMONIC_ACCOUNTS)
            and self.derivation_path == _DEFAULT_PATH
        ):
            known = MNEMONIC_ACCOUNTS[:count]
            return tuple(DevAccount(one.address, one.private_key, wei) for one in known)
        from ophion.dev.mnemonic import derived_keys
        from ophion.native.crypto import PrivateKey

        keys = derived_keys(self.mnemonic or MNEMONIC, self.derivation_path, count)
        return tuple(DevAccount(PrivateKey(key).address, key, wei) for key in keys)

    def problems(self) -> Iterator[str]:
        if self.balance is not None and not 0 <= self.balance < 10**15:
            yield f"Invalid value for option '--dev-balance': {self.balance} is not between 0 and 10^15"
        yield from self._fork_problems()
        if self.dump_state is not None and self.dump_state.is_dir():
            yield f"Invalid value for option '--dev-dump-state' (--dump-state, --state): {self.dump_state} is a folder"
        for path, names in (
            (self.dump_state, "'--dev-dump-state' (--dump-state, --state)"),
            (self.config_out, "'--dev-config-out' (--config-out)"),
        ):
            if path is not None and not path.parent.is_dir():
                yield f"Invalid value for option {names}: there is no folder {path.parent}"
        if self.mnemonic is None and self.derivation_path == _DEFAULT_PATH:
            return
        from ophion.dev.mnemonic import MnemonicError, derived_keys

        try:
            derived_keys(MNEMONIC if self.mnemonic is None else self.mnemonic, self.derivation_path, 1)
        except MnemonicError as error:
            yield str(error)

    def _fork_problems(self) -> Iterator[str]:
        if not self.fork_urls:
            if self.fork_transaction is not None:
                yield (
                    "Option '--dev-fork-transaction' (--fork-transaction-hash) names a transaction of another chain: it"
                    " needs '--dev-fork-url' (--fork-url)"
                )
            if self.fork_block is not None:
                yield (
                    "Option '--dev-fork-block-number' (--fork-block-number) names a block of another chain: it needs"
                    " '--dev-fork-url' (--fork-url)"
                )
            return
        if self.genesis_number:
            yield (
                "Options '--dev-genesis-number' (--number) and '--dev-fork-url' (--fork-url) name different first"
                " blocks. Use one of them"
            )
        if self.fork_transaction is not None and self.fork_block is not None:
            yield (
                "Options '--dev-fork-transaction' (--fork-transaction-hash) and '--dev-fork-block-number'"
                " (--fork-block-number) name different states. Use one of them"
            )
        for url in self.fork_urls:
            if not is_url(ForkSettings.split(url)[0], "http", "https"):
                yield (
                    f"Invalid value for option '--dev-fork-url' (--fork-url): {url!r} does not begin with"
                    " http:// or https://, the name of a host and, if given, a port from 1 to 65535"
                )
        for header in self.fork_headers:
            if re.fullmatch(_HEADER, header) is None:
                yield (
                    f"Invalid value for option '--dev-fork-header' (--fork-header): {header!r} is not of the form"
                    " 'Name: value' in one line of ASCII text"
                )
        if self.fork_cache and self.fork_cache_path is not None and not _may_be_folder(self.fork_cache_path):
            yield (
                f"Invalid value for option '--dev-fork-cache-path' (--fork-cache-path): {self.fork_cache_path} is not a"
                " folder"
            )


def _may_be_folder(path: Path) -> bool:
    """Whether a path is a folder, or can become one."""
    existing = next((one for one in (path, *path.parents) if one.exists()), None)
    return existing is None or existing.is_dir()


def _user_cache() -> Path:
    given = os.environ.get("XDG_CACHE_HOME")
    return Path(given) if given else Path.home() / ".cache"
