"""Builds the private transactions component from the core of a node, its options and an enclave."""

from __future__ import annotations

from typing import Final

from ophion.chain.chain import FIRST_STATE_KEY
from ophion.chain.pruning import has_dropped_states
from ophion.chainspec.forks import Milestone
from ophion.chainspec.spec import ChainSpec
from ophion.enclave.interface import Enclave
from ophion.errors import ConfigError, StorageError
from ophion.native.crypto import PrivateKey
from ophion.native.privacy import PrivateLedger
from ophion.native.store import Store
from ophion.node.build import NodeCore
from ophion.node.config import NodeConfig
from ophion.node.node_key_file import load_key
from ophion.primitives.types import HASH_LENGTH, Address
from ophion.privacy.flexible_groups import PRECOMPILE, FlexibleGroups
from ophion.privacy.marker_sender import MarkerSender
from ophion.privacy.private_executor import PrivateExecutor
from ophion.privacy.service import Privacy
from ophion.privacy.submission import Submission
from ophion.runtime.clock import Entropy
from ophion.runtime.thread_pools import Lanes

ANOTHER_DATABASE: Final = (
    "Make another one of its blocks: `ophion blocks export`, then `ophion blocks import` with a new --data-path and"
    " without --state-history, and copy the key files; the other members hand over the payloads."
)


def check_forks(spec: ChainSpec) -> None:
    """Raise `ConfigError` for a network whose forks are too old for private transactions."""
    if not any(milestone >= Milestone.PETERSBURG for milestone in (*spec.forks.blocks, *spec.forks.times)):
        raise ConfigError("--privacy-enabled: the genesis must have constantinopleFixBlock, or a later fork.")


def refused_markers(spec: ChainSpec, config: NodeConfig) -> str | None:
    """Return a warning if the network will refuse marker transactions of new accounts, because of their price or
    sender; otherwise None.

    The warning does not stop the node, because clients may send marker transactions themselves
    (`priv_distributeRawTransaction`).
    """
    if config.privacy.marker_key_file is not None:
        return None
    option = "--privacy-marker-transaction-signing-key-file"
    if Milestone.LONDON in spec.forks.blocks and not spec.zero_base_fee and not spec.fixed_base_fee:
        return (
            "Markers of private transactions are signed by fresh keys, which cannot pay the base fee of this network:"
            f" they will be refused. Give the key of an account with funds ({option}), or use a genesis with"
            " zeroBaseFee (--network=dev: --dev-fork=berlin)."
        )
    if config.permissions.accounts_file_enabled or config.permissions.accounts_contract_enabled:
        return (
            "Markers of private transactions are signed by fresh keys, which the account permissions do not list: they"
            f" will be refused. Give the key of a permitted account ({option})."
        )
    return None


def check_states(store: Store) -> None:
    """Raise `StorageError` if states were pruned or never fetched, because private transactions may need any state."""
    if not has_dropped_states(store):
        return
    first = int.from_bytes(store.meta(FIRST_STATE_KEY) or b"", "big")
    if first:
        raise StorageError(
            f"--privacy-enabled needs the state of every block, and this database began with the state of block {first}"
            " (--sync-mode=SNAP or CHECKPOINT). Start with a new --data-path and --sync-mode=FULL, and copy the key"
            " files: the other members hand over the payloads. Without --privacy-enabled, this database can be used as"
            " before."
        )
    raise StorageError(
        "--privacy-enabled needs the state of every block, and in this database some have been dropped"
        f" (--state-history). {ANOTHER_DATABASE} Without --privacy-enabled it can be used as before."
    )


def check_no_private_states(store: Store) -> None:
    """Raise `StorageError` if private states depend on public states that pruning would remove for the first time."""
    if PrivateLedger(store).groups(bytes(HASH_LENGTH), 1) and not has_dropped_states(store):
        raise StorageError(
            "This database holds private states, which are built on the states of old blocks: --state-history would"
            " drop those for good. Start without --state-history, or give private transactions up first with"
            " `ophion privacy rebuild`."
        )


def build_privacy(config: NodeConfig, core: NodeCore, enclave: Enclave, lanes: Lanes, entropy: Entropy) -> Privacy:
    """Build the private transactions component for this chain and this enclave."""
    chosen, queries = config.privacy, core.queries
    rules = (chosen.always_increments, chosen.flexible, chosen.max_gas)
    executor = PrivateExecutor(core.chain, enclave, lanes, chosen.precompile, *rules)

    def account_nonce(address: Address) -> int:
        return queries.head_state.nonce(address)

    def private_nonce(group: bytes, account: Address) -> int:
        return executor.ledger.nonce(group, account, queries.head_number)

    flexible, precompile = None, chosen.precompile
    if chosen.flexible:
        precompile = PRECOMPILE
        flexible = FlexibleGroups(executor.ledger, executor.hand_overs, enclave, lanes, lambda: queries.head_number)
    markers = MarkerSender(core.pool, lanes, entropy, precompile, _marker_key(config), account_nonce)
    submission = Submission(enclave, markers, lanes, core.chain.spec.chain_id, private_nonce, flexible, chosen.max_gas)
    return Privacy(enclave, executor, submission, queries, core.pool, precompile, chosen.multi_tenancy, flexible)


def _marker_key(config: NodeConfig) -> PrivateKey | None:
    path = config.privacy.marker_key_file
    return None if path is None else load_key(path)
