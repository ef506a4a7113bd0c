"""Options of Anvil 1.7.1 that `ophion dev` has no use for: some have no effect here, others are refused with a reason.

`DevOptions` (dev.py) has the options of Anvil that `ophion dev` takes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ophion.runtime.options import Options, option


def _refused(reason: str) -> Callable[[Any], None]:
    """Return a check that refuses every value except false, for the given reason."""

    def check(value: Any) -> None:
        if value is not False:
            raise ValueError(f"not supported, {reason}")

    return check


def _ignored(*flags: str, **settings: Any) -> Any:
    return option(*flags, default=None, hidden=True, help="No effect.", **settings)


def _unsupported(*flags: str, reason: str, **settings: Any) -> Any:
    return option(*flags, default=None, hidden=True, check=_refused(reason), help="Refused.", **settings)


class AnvilOptions(Options):
    """Options of Anvil that have no effect or are refused, so that a script for Anvil gets at most one clear error."""

    threads: int | None = _ignored("--threads", "-j")
    max_persisted_states: int | None = _ignored("--max-persisted-states")
    kept_blocks: int | None = _ignored("--transaction-block-keeper")
    preserves_states: bool | None = _ignored("--preserve-historical-states")
    prunes_history: tuple[str, ...] | None = _ignored("--prune-history", bare=True)
    verbosity: bool | None = _ignored("--verbose", "--verbosity", "-v", "-vv", "-vvv", "-vvvv", "-vvvvv")
    color: str | None = _ignored("--color")
    compute_units: int | None = _ignored("--compute-units-per-second")
    has_no_rate_limit: bool | None = _ignored("--no-rate-limit", "--no-rpc-rate-limit")
    prints_traces: bool | None = _ignored("--print-traces")
    traces_steps: bool | None = _ignored("--steps-tracing", "--tracing")

    init: str | None = _unsupported(
        "--init", reason="the development network has a genesis of its own. `ophion --genesis-file` starts another"
    )
    ipc: tuple[str, ...] | None = _unsupported(
        "--ipc", bare=True, reason="clients connect over HTTP or WebSocket (--host, --port)"
    )
    is_mixed: bool | None = _unsupported(
        "--mixed-mining", reason="blocks come either with each transaction or at an interval (--block-time)"
    )
    random_mnemonic: tuple[str, ...] | None = _unsupported(
        "--mnemonic-random", bare=True, reason="the accounts come from --mnemonic"
    )
    seed: int | None = _unsupported(
        "--mnemonic-seed-unsafe", "--mnemonic-seed", reason="the accounts come from --mnemonic"
    )
    number: int | None = _unsupported("--number", reason="the chain begins with block 0; `anvil_mine` makes more")
    state_interval: int | None = _unsupported(
        "--state-interval",
        "-s",
        reason="the state file is written when the node ends; `anvil_dumpState` returns it earlier",
    )
    epoch_slots: int | None = _unsupported(
        "--slots-in-an-epoch", reason="`safe` and `finalized` do not follow epochs on this chain"
    )
    json: bool | None = _unsupported("--json", reason="--logging-format=JSON writes such log lines")
    markdown: bool | None = _unsupported("--md", reason="--logging-format chooses between text and JSON")
    has_no_cors: bool | None = _unsupported("--no-cors", reason="--rpc-http-cors-origins names the pages that may ask")
    fork_chain_id: int | None = _unsupported(
        "--fork-chain-id", reason="the source names its chain id; --chain-id sets another one"
    )
    fork_transaction: str | None = _unsupported(
        "--fork-transaction-hash", reason="--fork-block-number names the block before the transaction"
    )
    gas_price: int | None = _unsupported("--gas-price", reason="prices follow the base fee (--base-fee)")
    has_no_minimum: bool | None = _unsupported(
        "--disable-min-priority-fee", "--no-priority-fee", reason="transactions without a priority fee are taken anyway"
    )
    limits_transaction_gas: bool | None = _unsupported(
        "--enable-tx-gas-limit", reason="a transaction may use the gas limit of its block"
    )
    hides_console: bool | None = _unsupported(
        "--disable-console-log", "--no-console-log", reason="--logging=WARN hides the output of contracts"
    )
    has_no_deployer: bool | None = _unsupported(
        "--disable-default-create2-deployer",
        "--no-create2",
        reason="`ophion dev` without --preset has no CREATE2 deployer; `anvil_setCode` removes it",
    )
    skips_balances: bool | None = _unsupported(
        "--disable-pool-balance-checks", reason="--balance and `anvil_setBalance` give accounts enough ether"
    )
    memory_limit: int | None = _unsupported("--memory-limit", reason="the gas limit bounds the memory of a call")
    is_celo: bool | None = _unsupported("--celo", reason="this node has the rules of Ethereum only (--hardfork)")
    is_optimism: bool | None = _unsupported(
        "--optimism", reason="this node has the rules of Ethereum only (--hardfork)"
    )
