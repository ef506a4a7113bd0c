"""The options of Anvil 1.7.1, in the order of `anvil --help`: what each does, or why it has no effect or is refused.

This table is the only list of these options. The help of a link named anvil, the completions and
`docs/anvil-options.md` are made from it.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any

from ophion.node.dev_options import DevOrder
from ophion.producer.options import MAX_PERIOD_S
from ophion.runtime.options import Options, OptionSpec, at_least, between, option, read_host, specs_of

HOSTS_VARIABLE = "ANVIL_IP_ADDR"
"""Variable of Anvil for --host."""
_NETWORK = "ethereum"
_RULES = "this node has the rules of Ethereum only (--hardfork)"


class AnvilEffect(Enum):
    """What this node does with an option of Anvil."""

    TAKEN = "taken"
    NO_EFFECT = "no effect"
    REFUSED = "refused"


class ColorChoice(Enum):
    """When the log has colours."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


def _refused(reason: str) -> Callable[[Any], None]:
    """Return a check that refuses every value except false, for the given reason."""

    def check(value: Any) -> None:
        if value is not False:
            raise ValueError(f"not supported, {reason}")

    return check


def _ignored(*flags: str, why: str, **settings: Any) -> Any:
    return option(*flags, default=None, hidden=True, help=why, **settings)


def _unsupported(*flags: str, why: str, **settings: Any) -> Any:
    help = f"{why[0].upper()}{why[1:]}."
    return option(*flags, default=None, hidden=True, check=_refused(why), help=help, **settings)


def _at_most_one(values: tuple[Any, ...] | None) -> None:
    """Check the value of an option that may be given without a value: at most one value."""
    if values is not None and len(values) > 1:
        raise ValueError("expected a single value")


def _chain_id(text: str) -> int:
    from ophion.cli.anvil.chain_names import chain_id  # lazy import: few command lines name a chain

    return chain_id(text)


def _check_network(value: str) -> None:
    if value.lower() != _NETWORK:
        raise ValueError(f"not supported, {_RULES}")


class RefusedOptions(Options):
    """Options of Anvil that are refused with a reason."""

    is_celo: bool | None = _unsupported("--celo", "--optimism", "--odyssey", why=_RULES)
    network: str | None = option(
        "--network",
        "-n",
        default=None,
        hidden=True,
        check=_check_network,
        help="Other networks than `ethereum`: this node has the rules of Ethereum only (--hardfork).",
    )


class IdleOptions(RefusedOptions):
    """Options of Anvil that are accepted without effect."""

    threads: int | None = _ignored("--threads", "--jobs", "-j", why="The node chooses its threads by itself.")
    max_persisted_states: int | None = _ignored("--max-persisted-states", why="Every state is kept in the database.")
    preserves_states: bool | None = _ignored(
        "--preserve-historical-states", why="A dump has the state of the head, and --data-path keeps every state."
    )
    prunes_history: tuple[str, ...] | None = _ignored(
        "--prune-history", bare=True, metavar="NUMBER", why="Every state is kept in the database, not in memory."
    )
    kept_blocks: int | None = _ignored(
        "--transaction-block-keeper", why="Every block is kept in the database, not in memory."
    )
    markdown: bool | None = _ignored("--md", why="The log is text, or JSON with --json.")
    verbosity: tuple[str, ...] | None = _ignored(
        "--verbosity",
        "--verbose",
        "-v",
        "-vv",
        "-vvv",
        "-vvvv",
        "-vvvvv",
        bare=True,
        metavar="",
        why="--logging sets what the log shows.",
    )
    compute_units: int | None = _ignored(
        "--compute-units-per-second", why="Requests to the source of a fork are sent in batches, without a rate limit."
    )
    has_no_rate_limit: bool | None = _ignored(
        "--no-rate-limit", "--no-rpc-rate-limit", why="Requests to the source of a fork have no rate limit."
    )
    gas_price: int | None = _ignored("--gas-price", why="Prices follow the base fee (--block-base-fee-per-gas).")
    skips_balances: bool | None = _ignored(
        "--disable-pool-balance-checks",
        why="A transaction that its sender cannot pay is refused at once, not kept in the pool.",
    )
    memory_limit: int | None = _ignored("--memory-limit", why="The gas limit bounds the memory of a call.")
    max_transactions: int | None = _ignored(
        "--max-transactions", why="A block takes all waiting transactions up to its gas limit."
    )


class AnvilOptions(IdleOptions):
    """Options of Anvil."""

    accounts: int | None = option("--accounts", "-a", default=None, help="Number of accounts to derive.")
    block_time: float | None = option(
        "--block-time",
        "--blockTime",
        "-b",
        default=None,
        metavar="SECONDS",
        check=between(0.001, MAX_PERIOD_S),
        help="Seconds between blocks.",
    )
    balance: float | None = option("--balance", default=None, metavar="ETHER", help="Balance of each account in ether.")
    config_out: Path | None = option("--config-out", default=None, help="Write accounts and keys to this JSON file.")
    derivation_path: str | None = option(
        "--derivation-path", default=None, metavar="PATH", help="Derivation path of the accounts, without the index."
    )
    dump_state: Path | None = option(
        "--dump-state", default=None, help="File that is written at the end; in a folder, its state.json."
    )
    hardfork: str | None = option("--hardfork", default=None, metavar="FORK", help="Latest fork of the chain.")
    init: Path | None = option(
        "--init", default=None, help="Genesis file (geth's form) with accounts, chain id and first block."
    )
    ipc: tuple[str, ...] | None = option(
        "--ipc",
        "--ipcpath",
        default=None,
        bare=True,
        metavar="PATH",
        check=_at_most_one,
        help="Unix socket for JSON-RPC; /tmp/anvil.ipc without a path.",
    )
    load_state: Path | None = option("--load-state", default=None, help="File that is loaded at the start.")
    mnemonic: str | None = option("--mnemonic", "-m", default=None, metavar="WORDS", help="Mnemonic of the accounts.")
    is_mixed: bool = option(
        "--mixed-mining", default=False, help="Produce blocks for each transaction and every --block-time seconds."
    )
    random_mnemonic: tuple[int, ...] | None = option(
        "--mnemonic-random",
        default=None,
        bare=True,
        metavar="WORDS",
        check=_at_most_one,
        help="Take a new mnemonic of 12, 15, 18, 21 or 24 words; 12 without a number.",
    )
    seed: int | None = option(
        "--mnemonic-seed-unsafe",
        "--mnemonic-seed",
        default=None,
        check=between(0, 2**64 - 1),
        help="Take the mnemonic that Anvil makes of this number. For tests only.",
    )
    no_mining: bool = option("--no-mining", "--no-mine", default=False, help="Produce blocks only on demand.")
    number: int | None = option("--number", default=None, help="Number of the genesis block.")
    order: DevOrder | None = option("--order", default=None, help="Order of transactions in blocks.")
    port: int | None = option("--port", "-p", default=None, help="Port of JSON-RPC over HTTP and WebSocket.")
    state_interval: float | None = option(
        "--state-interval",
        "-s",
        default=None,
        metavar="SECONDS",
        check=at_least(0.001),
        help="Also write the state file (--state, --dump-state) at this interval.",
    )
    epoch_slots: int | None = option(
        "--slots-in-an-epoch",
        default=None,
        check=at_least(0),
        help="Blocks between the head and `safe`, and between `safe` and `finalized`.",
    )
    state: Path | None = option(
        "--state", default=None, help="File that is loaded at the start and written at the end."
    )
    timestamp: int | None = option("--timestamp", default=None, help="Timestamp of the genesis block.")
    color: ColorChoice | None = option("--color", default=None, hidden=True, help="Colours of the log.")
    json: bool = option("--json", default=False, hidden=True, help="Write the log as JSON: --logging-format=JSON.")
    silent: bool = option("--silent", "--quiet", "-q", default=False, help="Write no log and no banner.")
    allow_origin: str | None = option(
        "--allow-origin", default=None, help="Pages that may ask: --rpc-http-cors-origins. (default: local pages)"
    )
    fork_cache_path: Path | None = option(
        "--fork-cache-path", "--cache-path", default=None, help="Folder that keeps what a fork has fetched."
    )
    hosts: tuple[str, ...] | None = option(
        "--host", default=None, parse=read_host, metavar="HOST", help="Addresses on which JSON-RPC listens."
    )
    has_no_cors: bool = option("--no-cors", default=False, help="No page may ask: --rpc-http-cors-origins=none.")
    has_no_size_limit: bool = option(
        "--no-request-size-limit", default=False, help="Take requests of up to 2^31 - 1 bytes."
    )
    fork_urls: tuple[str, ...] | None = option(
        "--fork-url",
        "--rpc-url",
        "-f",
        default=None,
        metavar="URL",
        help="Continue the chain of this node; URL@BLOCK names a block.",
    )
    fork_chain_id: int | None = option(
        "--fork-chain-id", default=None, parse=_chain_id, metavar="ID", check=at_least(1), help="Chain id of a fork."
    )
    fork_block_number: int | None = option(
        "--fork-block-number", default=None, help="Block to continue from; with -N, N blocks before the latest."
    )
    fork_transaction: str | None = option(
        "--fork-transaction-hash", default=None, metavar="HASH", help="Continue right after this transaction."
    )
    fork_header: tuple[str, ...] | None = option(
        "--fork-header", default=None, help="HTTP headers of requests to the forked node."
    )
    fork_backoff: int | None = option(
        "--fork-retry-backoff", default=None, metavar="MILLISECONDS", help="Wait before the first retry."
    )
    no_storage_caching: bool = option("--no-storage-caching", default=False, help="Keep nothing that a fork fetches.")
    fork_retries: int | None = option("--retries", default=None, help="Retries of requests to the forked node.")
    fork_timeout: int | None = option(
        "--timeout", default=None, metavar="MILLISECONDS", help="Timeout of requests to the forked node."
    )
    base_fee: int | None = option(
        "--block-base-fee-per-gas", "--base-fee", default=None, metavar="WEI", help="Base fee of the genesis block."
    )
    chain_id: int | None = option(
        "--chain-id",
        default=None,
        parse=_chain_id,
        metavar="ID",
        check=at_least(1),
        help="Chain id or name of a public chain; 31337 with a preset.",
    )
    code_size_limit: int | None = option("--code-size-limit", default=None, help="Maximum bytes of a contract's code.")
    has_no_gas_limit: bool = option(
        "--disable-block-gas-limit", default=False, help="Gas limit of 2^53 - 1 for blocks."
    )
    is_unlimited: bool = option("--disable-code-size-limit", default=False, help="Allow contract code of any size.")
    has_no_minimum: bool = option(
        "--disable-min-priority-fee", "--no-priority-fee", default=False, help="Suggest no priority fee to clients."
    )
    limits_transaction_gas: bool = option(
        "--enable-tx-gas-limit",
        "--tx-gas-limit",
        default=False,
        help="Enforce the gas limit of transactions of EIP-7825.",
    )
    gas_limit: int | None = option("--gas-limit", default=None, help="Gas limit of blocks.")
    auto_impersonate: bool = option(
        "--auto-impersonate", "--auto-unlock", default=False, help="Accept unsigned transactions of all accounts."
    )
    hides_console: bool = option(
        "--disable-console-log", "--no-console-log", default=False, help="Do not show the output of console.log."
    )
    has_no_deployer: bool = option(
        "--disable-default-create2-deployer", "--no-create2", default=False, help="Start without the CREATE2 deployer."
    )
    prints_traces: bool = option(
        "--print-traces", "--enable-trace-printing", default=False, help="Show the call tree of every execution."
    )
    traces_steps: bool | None = option(
        "--steps-tracing", "--tracing", default=None, hidden=True, help="Traces of steps are always available."
    )


def effect_of(spec: OptionSpec) -> AnvilEffect:
    """Return what this node does with an option of the table."""
    name = spec.path[0]
    if name in RefusedOptions.declared:
        return AnvilEffect.REFUSED
    return AnvilEffect.NO_EFFECT if name in IdleOptions.declared else AnvilEffect.TAKEN


def idle_warnings(given: AnvilOptions) -> list[str]:
    """Return a line for each given option that has no effect."""
    return [
        f"{spec.flag} has no effect. {spec.declaration.help}"
        for spec in specs_of(AnvilOptions)
        if effect_of(spec) is AnvilEffect.NO_EFFECT and getattr(given, spec.path[0]) is not None
    ]
