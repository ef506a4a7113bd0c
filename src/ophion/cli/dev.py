"""`ophion dev`: a development node with every service enabled."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ophion.cli.anvil_options import AnvilOptions
from ophion.cli.command import Command, CommandSession
from ophion.errors import ConfigError
from ophion.node.config import PERM_WITHOUT_PERMISSIONS, NodeConfig
from ophion.node.dev_options import DevOrder, DevPreset
from ophion.node.dev_preset import command_line, with_dev_preset, with_tokens
from ophion.node.launch import launch
from ophion.producer.options import MAX_PERIOD_S
from ophion.runtime.options import at_least, between, misspelt_variables, option, specs_of, warnings_of

if TYPE_CHECKING:
    from ophion.node.build import NodeCore
    from ophion.runtime.thread_pools import Lanes
    from ophion.sdk.execution_log.execution_log import ExecutionLog


class DevOptions(AnvilOptions):
    """Options: short names of `ophion dev` for options of a development node."""

    print_command: bool = option("--print-command", default=False, help="Show the equivalent command line and exit.")
    preset: DevPreset | None = option(
        "--preset", default=None, help="Chain id, accounts, prices and name as Anvil or Hardhat's node have them."
    )
    mnemonic: str | None = option("--mnemonic", "-m", default=None, metavar="WORDS", help="Mnemonic of the accounts.")
    accounts: int | None = option("--accounts", "-a", default=None, help="Number of accounts to derive.")
    balance: float | None = option("--balance", default=None, metavar="ETHER", help="Balance of each account in ether.")
    derivation_path: str | None = option(
        "--derivation-path", default=None, metavar="PATH", help="Derivation path of the accounts, without the index."
    )
    chain_id: int | None = option("--chain-id", default=None, check=at_least(1), help="Chain id; 31337 with a preset.")
    host: str | None = option("--host", default=None, help="Address on which JSON-RPC listens.")
    port: int | None = option("--port", "-p", default=None, help="Port of JSON-RPC over HTTP.")
    allow_origin: str | None = option(
        "--allow-origin", default=None, hidden=True, help="Pages that may ask: --rpc-http-cors-origins."
    )
    max_transactions: int | None = option(
        "--max-transactions", default=None, hidden=True, help="Transactions in the pool: --tx-pool-max-size."
    )
    has_no_gas_limit: bool = option(
        "--disable-block-gas-limit", default=False, hidden=True, help="Gas limit of 2^53 - 1: --gas-limit."
    )
    has_no_size_limit: bool = option(
        "--no-request-size-limit", default=False, hidden=True, help="Requests of up to 2^31 - 1 bytes."
    )
    no_mining: bool = option("--no-mining", "--no-mine", default=False, help="Produce blocks only on demand.")
    block_time: float | None = option(
        "--block-time",
        "-b",
        default=None,
        metavar="SECONDS",
        check=between(0.001, MAX_PERIOD_S),
        help="Seconds between blocks.",
    )
    hardfork: str | None = option("--hardfork", default=None, metavar="FORK", help="Latest fork of the chain.")
    timestamp: int | None = option("--timestamp", default=None, help="Timestamp of the genesis block.")
    gas_limit: int | None = option("--gas-limit", default=None, help="Gas limit of blocks.")
    base_fee: int | None = option(
        "--block-base-fee-per-gas", "--base-fee", default=None, metavar="WEI", help="Base fee of the genesis block."
    )
    code_size_limit: int | None = option("--code-size-limit", default=None, help="Maximum bytes of a contract's code.")
    is_unlimited: bool = option("--disable-code-size-limit", default=False, help="Allow contract code of any size.")
    order: DevOrder | None = option("--order", default=None, help="Order of transactions in blocks.")
    auto_impersonate: bool = option(
        "--auto-impersonate", default=False, help="Accept unsigned transactions of all accounts."
    )
    state: Path | None = option(
        "--state", default=None, help="File that is loaded at the start and written at the end."
    )
    load_state: Path | None = option("--load-state", default=None, help="File that is loaded at the start.")
    dump_state: Path | None = option("--dump-state", default=None, help="File that is written at the end.")
    artifacts: Path | None = option(
        "--artifacts", default=None, metavar="DIR", help="Compiled contracts, for names, errors and source lines."
    )
    config_out: Path | None = option("--config-out", default=None, help="JSON file that gets accounts and keys.")
    fork_url: str | None = option(
        "--fork-url",
        "--rpc-url",
        "-f",
        default=None,
        metavar="URL",
        help="Continue the chain of this node; URL@BLOCK names a block.",
    )
    fork_block_number: int | None = option("--fork-block-number", default=None, help="Block to continue from.")
    fork_retries: int | None = option("--retries", default=None, help="Retries of requests to the forked node.")
    fork_backoff: int | None = option(
        "--fork-retry-backoff", default=None, metavar="MILLISECONDS", help="Wait before the first retry."
    )
    fork_timeout: int | None = option(
        "--timeout", default=None, metavar="MILLISECONDS", help="Timeout of requests to the forked node."
    )
    fork_header: str | None = option("--fork-header", default=None, help="HTTP header of requests to the forked node.")
    fork_cache_path: Path | None = option(
        "--fork-cache-path", "--cache-path", default=None, help="Folder that keeps what a fork has fetched."
    )
    no_storage_caching: bool = option("--no-storage-caching", default=False, help="Keep nothing that a fork fetches.")
    silent: bool = option("--silent", "--quiet", "-q", default=False, help="Write no log and no banner.")

    def tokens(self) -> list[str]:
        """Return the node options that are equivalent to these options."""
        state_in = self.load_state or (self.state if self.state is not None and self.state.exists() else None)
        # a forked chain usually follows current rules, so use the defaults of anvil, which are current too
        preset = DevPreset.ANVIL if self.preset is None and self.fork_url is not None else self.preset
        plain = (
            ("--dev-preset", None if preset is None else preset.value),
            ("--dev-mnemonic", self.mnemonic),
            ("--dev-accounts", self.accounts),
            ("--dev-balance", self.balance),
            ("--dev-derivation-path", self.derivation_path),
            ("--override-genesis-config", None if self.chain_id is None else f"chainId={self.chain_id}"),
            ("--rpc-http-host", self.host),
            ("--rpc-http-port", self.port),
            ("--dev-automine", "false" if self.no_mining else None),
            ("--block-period", self.block_time),
            ("--dev-fork", None if self.hardfork is None else _fork(self.hardfork)),
            ("--rpc-http-cors-origins", self.allow_origin),
            ("--tx-pool-max-size", self.max_transactions),
            ("--rpc-http-max-request-content-length", 2**31 - 1 if self.has_no_size_limit else None),
            ("--dev-timestamp", self.timestamp),
            ("--dev-gas-limit", 2**53 - 1 if self.has_no_gas_limit else self.gas_limit),
            ("--dev-base-fee", self.base_fee),
            ("--dev-code-size-limit", 2**31 - 1 if self.is_unlimited else self.code_size_limit),
            ("--dev-order", None if self.order is None else self.order.value),
            ("--dev-auto-impersonate", "true" if self.auto_impersonate else None),
            ("--dev-load-state", state_in),
            ("--dev-dump-state", self.dump_state or self.state),
            ("--dev-artifacts", self.artifacts),
            ("--dev-config-out", self.config_out),
            ("--dev-fork-url", self.fork_url),
            ("--dev-fork-block-number", self.fork_block_number),
            ("--dev-fork-retries", self.fork_retries),
            ("--dev-fork-retry-backoff", self.fork_backoff),
            ("--dev-fork-timeout", self.fork_timeout),
            ("--dev-fork-header", self.fork_header),
            ("--dev-fork-cache-path", self.fork_cache_path),
            ("--dev-fork-cache-enabled", "false" if self.no_storage_caching else None),
            ("--logging", "OFF" if self.silent else None),
        )
        return [f"{flag}={value}" for flag, value in plain if value is not None]


def _fork(name: str) -> str:
    """Translate a fork name of other development nodes to Ophion's name."""
    folded = name.lower()
    return {"paris": "london", "merge": "london", "latest": "osaka", "muirglacier": "istanbul"}.get(folded, folded)


def start(options: DevOptions, session: CommandSession) -> int:
    """Add the options of the development preset, then run the node."""
    if options.no_mining and options.block_time:
        raise ConfigError("--no-mining makes blocks only on demand, --block-time at an interval. Choose one of them.")
    settings = with_tokens(session.settings, options.tokens())
    loaded = with_dev_preset(settings)
    if not session.settings.is_given("--dev-unlocked-accounts"):
        _refuse_exposed_signers(loaded.config)
    if options.print_command:
        print(command_line(loaded.given.values()))
        return 0
    # omit the warning that API group PERM is enabled without permissioning: the preset enabled it, not the user
    unexpected = (warning for warning in warnings_of(loaded) if warning != PERM_WITHOUT_PERMISSIONS)
    for warning in (*misspelt_variables(os.environ, specs_of(NodeConfig)), *session.warnings, *unexpected):
        print(f"Warning: {warning}", file=sys.stderr)
    return launch(loaded, _attach_execution_log)


def _attach_execution_log(config: NodeConfig, core: NodeCore, lanes: Lanes) -> ExecutionLog | None:
    # lazy import: the module loads while the database opens, so it does not delay the start
    from ophion.sdk.execution_log.attach import attach_execution_log

    return attach_execution_log(config, core, lanes)


def _refuse_exposed_signers(config: NodeConfig) -> None:
    """Raise `ConfigError` if other machines could sign for the accounts that the preset unlocks."""
    if exposed := config.exposed_signers():
        raise ConfigError(
            f"{' and '.join(exposed)}: other machines could sign for the unlocked accounts of the dev network."
            " Add --dev-unlocked-accounts to allow that, or --dev-unlocked-accounts=false to keep the accounts locked."
        )


COMMANDS = (
    Command(
        "dev",
        "Start a development node: dev network, mining, JSON-RPC over HTTP and WebSocket, temporary data.",
        start,
        DevOptions,
        examples=(
            "ophion dev",
            "ophion dev --preset=anvil",
            "ophion dev --data-path=data --block-period=5",
            "ophion dev --print-command",
        ),
    ),
)
