"""Translates Anvil's options to the options of the node that do the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ophion.cli.anvil.options import AnvilOptions, ColorChoice

_MAX_BYTES = 2**31 - 1
_MAX_GAS = 2**53 - 1
_DEFAULT_IPC = "/tmp/anvil.ipc"
_STATE_FILE = "state.json"


def contradictions(given: AnvilOptions) -> Iterator[str]:
    """Yield a sentence for each contradiction between options."""
    if given.no_mining and given.block_time:
        yield "--no-mining makes blocks only on demand, --block-time at an interval. Choose one of them."
    if given.is_mixed and not given.block_time:
        yield "--mixed-mining makes blocks at an interval as well: it needs --block-time."
    words = (("--mnemonic", given.mnemonic), ("--mnemonic-random", given.random_mnemonic))
    named = [flag for flag, value in (*words, ("--mnemonic-seed-unsafe", given.seed)) if value is not None]
    if len(named) > 1:
        yield f"{' and '.join(named)} name different accounts. Choose one of them."


def node_tokens(given: AnvilOptions) -> list[str]:
    """Return the equivalent options of the node."""
    state = None if given.state is None else _state_file(given.state)
    kept = given.load_state or (state if state is not None and state.exists() else None)
    written = state if given.dump_state is None else _state_file(given.dump_state)
    chain_id = given.fork_chain_id if given.chain_id is None else given.chain_id
    plain = (
        ("--dev-mnemonic", _mnemonic(given)),
        ("--dev-accounts", given.accounts),
        ("--dev-balance", given.balance),
        ("--dev-derivation-path", given.derivation_path),
        ("--override-genesis-config", None if chain_id is None else f"chainId={chain_id}"),
        ("--rpc-http-host", given.hosts and ",".join(given.hosts)),
        ("--rpc-http-port", given.port),
        ("--dev-automine", "false" if given.no_mining else None),
        ("--dev-mixed-mining", _on(given.is_mixed)),
        ("--block-period", given.block_time),
        ("--dev-fork", given.hardfork and _fork(given.hardfork)),
        ("--dev-init-file", given.init),
        ("--dev-ipc-path", None if given.ipc is None else (*given.ipc, _DEFAULT_IPC)[0]),
        ("--rpc-http-cors-origins", "none" if given.has_no_cors else given.allow_origin),
        ("--rpc-http-max-request-content-length", _MAX_BYTES if given.has_no_size_limit else None),
        ("--dev-timestamp", given.timestamp),
        ("--dev-genesis-number", given.number),
        ("--dev-gas-limit", _MAX_GAS if given.has_no_gas_limit else given.gas_limit),
        ("--dev-base-fee", given.base_fee),
        ("--dev-code-size-limit", _MAX_BYTES if given.is_unlimited else given.code_size_limit),
        ("--dev-order", given.order and given.order.value),
        ("--dev-epoch-slots", given.epoch_slots),
        ("--dev-priority-fee", 0 if given.has_no_minimum else None),
        ("--dev-transaction-gas-cap", _on(given.limits_transaction_gas)),
        ("--dev-create2-deployer", "false" if given.has_no_deployer else None),
        ("--dev-console-enabled", "false" if given.hides_console else None),
        ("--dev-print-traces", _on(given.prints_traces)),
        ("--dev-auto-impersonate", _on(given.auto_impersonate)),
        ("--dev-load-state", kept),
        ("--dev-dump-state", written),
        ("--dev-state-interval", given.state_interval),
        ("--dev-config-out", given.config_out),
        ("--dev-fork-url", given.fork_urls and ",".join(given.fork_urls)),
        ("--dev-fork-block-number", given.fork_block_number),
        ("--dev-fork-transaction", given.fork_transaction),
        ("--dev-fork-retries", given.fork_retries),
        ("--dev-fork-retry-backoff", given.fork_backoff),
        ("--dev-fork-timeout", given.fork_timeout),
        ("--dev-fork-header", given.fork_header and ",".join(given.fork_header)),
        ("--dev-fork-cache-path", given.fork_cache_path),
        ("--dev-fork-cache-enabled", "false" if given.no_storage_caching else None),
        ("--color-enabled", _color(given.color)),
        ("--logging-format", "JSON" if given.json else None),
        ("--logging", "OFF" if given.silent else None),
    )
    return [f"{flag}={value}" for flag, value in plain if value is not None]


def _fork(name: str) -> str:
    from ophion.cli.anvil.chain_names import fork_name  # lazy import: few command lines name a fork

    return fork_name(name)


def _on(is_set: bool) -> str | None:
    return "true" if is_set else None


def _color(choice: ColorChoice | None) -> str | None:
    return None if choice in (None, ColorChoice.AUTO) else str(choice is ColorChoice.ALWAYS).lower()


def _state_file(path: Path) -> Path:
    return path / _STATE_FILE if path.is_dir() else path


def _mnemonic(given: AnvilOptions) -> str | None:
    if given.seed is None and given.random_mnemonic is None:
        return given.mnemonic
    # lazy import: the module loads OpenSSL
    from ophion.cli.anvil.seeded import DEFAULT_WORDS, random_mnemonic, seeded_mnemonic

    if given.seed is not None:
        return seeded_mnemonic(given.seed)
    return random_mnemonic((*(given.random_mnemonic or ()), DEFAULT_WORDS)[0])
