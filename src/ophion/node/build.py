"""Constructs and connects chain, pool and producer, for nodes and for tests.

Components process a new head in the order of the `listen` calls: queries first, then the pool, then all others.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from ophion.chain.block_builder import BlockBuilder
from ophion.chain.chain import Chain
from ophion.chain.fee_oracle import FeeOracle
from ophion.chain.gas_price import FeeFloor, PriceSampling
from ophion.chain.importer import Importer
from ophion.chain.queries import ChainQueries
from ophion.chainspec.consensus_parameters import CliqueParameters, EngineKind
from ophion.chainspec.forks import Fork, Milestone
from ophion.chainspec.genesis import Genesis
from ophion.chainspec.spec import ChainSpec
from ophion.consensus.engine import Engine
from ophion.consensus.engine_factory import engine_for
from ophion.errors import ConfigError
from ophion.native.store import Store
from ophion.node.validator_contract import read_contracts
from ophion.permissions.permissions import Permissions
from ophion.pool.admission import PoolHead
from ophion.pool.journal import TransactionJournal
from ophion.pool.pool import TxPool
from ophion.primitives.header import HashedHeader, Header
from ophion.primitives.types import Address
from ophion.producer.block_assembly import Assembler, MinerSettings
from ophion.producer.instant_sealer import InstantSealer
from ophion.producer.mining_control import MiningControl, Sealer
from ophion.producer.pow_miner import PowMiner, WorkPackages
from ophion.runtime.clock import Clock, Entropy
from ophion.runtime.thread_pools import Lanes

if TYPE_CHECKING:
    from ophion.consensus.bft.signatures import DigestSigner
    from ophion.consensus.validator_votes import LocalProposals
    from ophion.dev.cheat_codes import DevNode
    from ophion.node.core_config import CoreConfig
    from ophion.producer.bft_driver import BftDriver
    from ophion.producer.etcd_vote_store import EtcdVoteStore

JOURNAL_NAME = "local-transactions.journal"

_PENDING_DEADLINE_S = 1.0
_CODE_SIZE_LIMIT = 24_576
_BLOBS_PER_TRANSACTION = 6


class NodeCore(Struct, frozen=True):
    """Chain, pool, producer and consensus of a node, without its public interface."""

    chain: Chain
    importer: Importer
    queries: ChainQueries
    fees: FeeOracle
    pool: TxPool
    assembler: Assembler
    mining: MiningControl
    permissions: Permissions
    proposals: LocalProposals | None = None
    """Votes of this node's operator on validators or signers; None without proof of authority."""
    bft: BftDriver | None = None
    """The consensus driver of an IBFT 2.0 or QBFT network; None on other networks."""
    dev: DevNode | None = None
    """The cheat codes of a development network; None on other networks."""


def build_core(
    config: CoreConfig,
    genesis: Genesis,
    store: Store,
    signer: DigestSigner,
    lanes: Lanes,
    clock: Clock,
    entropy: Entropy,
    data_path: Path | None = None,
    permissions: Permissions | None = None,
) -> NodeCore:
    """Build chain, pool and producer of one network. With `data_path`, local transactions are saved in this directory.

    `signer` is the validator key: the node's key, unless an option names another key.
    """
    spec = genesis.spec
    permissions = permissions or Permissions()
    _check_production(config, spec)
    engine = engine_for(spec, equal_timestamps=config.miner.equal_timestamps)
    node_clock, dev = clock, None
    if config.has_cheat_codes:
        # lazy import: only development networks need this module
        from ophion.node.dev_core import DevBuild

        dev = DevBuild(config, spec, clock, entropy)
        engine, clock = dev.engine, dev.clock
    chain = Chain.open(store, genesis, engine)
    if dev is not None:
        dev.relax(chain, genesis)
    chain.state_history = config.storage.states_kept
    is_authority = _is_authority(spec)
    keeps_revert_data = config.access.revert_reason_enabled
    permissions.use_contracts(config.permissions, chain)
    if data_path is not None and config.permissions.is_used:
        # lazy import: a node without permission rules starts faster
        from ophion.permissions.audit import NAME, AuditLog

        permissions.record_changes(AuditLog(data_path / NAME, node_clock, lanes.write), chain)
    importer = Importer(chain, lanes, clock, keeps_revert_data, permissions.sender_check)
    read_contracts(chain, importer.state_after)
    floor = FeeFloor(config.miner.min_gas_price, config.miner.min_priority_fee)
    queries = ChainQueries(chain, clock)
    access = config.access
    sampling = PriceSampling(access.gas_price_blocks, access.gas_price_percentile, access.gas_price_max)
    journal = TransactionJournal(data_path / JOURNAL_NAME) if data_path is not None and config.pool.save else None
    account_refusal, local_rule = permissions.account_refusal, permissions.local_rule
    pool = TxPool(config.pool, floor, lanes, node_clock, pool_head(queries), account_refusal, journal, local_rule)
    if permissions.listed_accounts is not None:
        permissions.listed_accounts.changed.listen(lambda change: pool.forget_accounts())
    chain.events.listen(lambda event: pool.on_chain_event(event, pool_head(queries)))
    author = signer.address if is_authority else config.miner.coinbase
    settings = MinerSettings(author, config.miner.extra_data or b"", config.miner.target_gas_limit)
    builder = BlockBuilder(chain, keeps_revert_data)
    beneficiary = _beneficiary(spec, engine, signer.address) if is_authority else None
    assembler = Assembler(chain, importer, builder, pool, lanes, clock, settings, floor, beneficiary, permissions)
    pool.events.listen(lambda event: queries.forget_pending())
    queries.serve_pending(lambda: assembler.preview(_PENDING_DEADLINE_S))
    fees = FeeOracle(queries, floor, sampling, lanes)
    if dev is not None:
        mining, cheat_codes = dev.finish(chain, importer, builder, queries, pool, assembler, settings, floor, lanes)
        fees.suggested_tip = dev.suggested_tip
        return NodeCore(chain, importer, queries, fees, pool, assembler, mining, permissions, dev=cheat_codes)
    if not is_authority:
        mining = _mining(config, spec, assembler, settings, floor, lanes, entropy)
        return NodeCore(chain, importer, queries, fees, pool, assembler, mining, permissions)
    # lazy import: only networks with validators or signers need this module
    from ophion.consensus.validator_votes import LocalProposals

    proposals, bft = LocalProposals(), None
    sealer: Sealer
    if spec.engine is EngineKind.CLIQUE:
        # lazy import: only Clique networks need these modules
        from random import Random

        from ophion.consensus.clique import CliqueEngine
        from ophion.consensus.clique_to_qbft import MigrationEngine
        from ophion.producer.clique_sealer import CliqueSealer
        from ophion.producer.shared_seals import SharedSeals

        clique = engine.clique if isinstance(engine, MigrationEngine) else engine
        assert isinstance(clique, CliqueEngine)

        # the seed need not be secret, because it only varies how long out-of-turn signers wait
        randomness = Random(entropy.token(16))
        parameters = spec.clique or CliqueParameters()
        last = None if spec.migration_block is None else spec.migration_block - 1
        seals = _etcd_votes(config, chain, signer.address)
        sealer = early = CliqueSealer(
            assembler,
            clique,
            parameters,
            signer,
            proposals,
            randomness,
            config.security_module.is_used,
            None if seals is None else SharedSeals(seals),
            last,
        )
        if isinstance(engine, MigrationEngine):
            from ophion.producer.migration_sealer import MigrationSealer

            bft = _bft(config, engine.bft, assembler, importer, signer, proposals, lanes, clock.now())
            sealer = MigrationSealer(chain, engine.first, early, bft)
    else:
        sealer = bft = _bft(config, engine, assembler, importer, signer, proposals, lanes)
    mining = MiningControl(settings, floor, sealer, None, signer.address, engine.name)
    return NodeCore(chain, importer, queries, fees, pool, assembler, mining, permissions, proposals, bft)


def pool_head(queries: ChainQueries) -> PoolHead:
    """Return the values of the head and the next block that the transaction pool needs."""
    spec = queries.spec
    following = queries.next_block().header
    fork = spec.fork_of(following)
    limit = 2 * (spec.contract_size_limit or _CODE_SIZE_LIMIT)
    return PoolHead(
        fork=fork.name,
        chain_id=spec.chain_id if fork.has(Milestone.SPURIOUS) else None,
        # a cheat code may set the gas limit of the next block of a development chain
        gas_limit=(following if spec.is_dev else queries.head.header).gas_limit,
        base_fee=following.base_fee_per_gas or 0,
        init_code_limit=limit if fork.has(Milestone.SHANGHAI) else None,
        state=queries.head_state,
        blob_limit=0 if fork.blobs is None else _blob_limit(fork, fork.blobs.max),
        has_gas_cap=queries.chain.caps_transaction_gas,
        has_still_base_fee=spec.is_dev,
    )


def _blob_limit(fork: Fork, block_limit: int) -> int:
    """Return the maximum number of blobs of one transaction. From Osaka on (EIP-7594), this limit is lower than the
    limit of a block.
    """
    return min(block_limit, _BLOBS_PER_TRANSACTION) if fork.has(Milestone.OSAKA) else block_limit


def _check_production(config: CoreConfig, spec: ChainSpec) -> None:
    if config.consensus.vote_store is not None and not _is_authority(spec):
        raise ConfigError("--vote-store belongs to IBFT 2.0, QBFT and Clique: this network has no votes to store.")
    if config.miner.block_period_s and not spec.is_dev:
        raise ConfigError("--block-period belongs to --network=dev: other networks decide themselves when blocks come.")
    if config.miner.equal_timestamps and not spec.is_dev:
        raise ConfigError("--dev-equal-timestamps belongs to --network=dev: other networks ask for rising timestamps.")


def _is_authority(spec: ChainSpec) -> bool:
    """Whether validators or signers produce the blocks (proof of authority)."""
    return spec.engine is not EngineKind.ETHASH and spec.terminal_total_difficulty is None


def _beneficiary(spec: ChainSpec, engine: Engine, node_address: Address) -> Callable[[Header], Address]:
    """Return a function from a draft header to the address that earns its fees. The draft has no seal yet."""
    if spec.engine is EngineKind.CLIQUE:
        first = spec.migration_block
        return lambda draft: (
            node_address
            if first is None or draft.number < first
            else engine.beneficiary(HashedHeader(draft, draft.parent_hash))
        )
    return lambda draft: engine.beneficiary(HashedHeader(draft, draft.parent_hash))


def _bft(
    config: CoreConfig,
    engine: Engine,
    assembler: Assembler,
    importer: Importer,
    signer: DigestSigner,
    proposals: LocalProposals,
    lanes: Lanes,
    running_since: float | None = None,
) -> BftDriver:
    # lazy import: networks without BFT start faster
    from ophion.consensus.bft.engine import BftEngine
    from ophion.producer.bft_driver import BftDriver
    from ophion.producer.bft_tuning import BftTuning

    assert isinstance(engine, BftEngine)
    chosen = config.consensus
    tuning = BftTuning(
        chosen.max_round_timeout_s,
        chosen.follows_others,
        chosen.passes_over,
        chosen.wire_profile,
        chosen.header_form,
    )
    return BftDriver(
        assembler,
        importer,
        engine,
        signer,
        proposals,
        lanes,
        tuning=tuning,
        shared_votes=_etcd_votes(config, assembler.chain, signer.address),
        signs_in_thread=config.security_module.is_used,
        running_since=running_since,
    )


def _etcd_votes(config: CoreConfig, chain: Chain, validator: Address) -> EtcdVoteStore | None:
    """Return the shared vote store that an option names, or None."""
    store = config.consensus.vote_store
    if store is None:
        return None
    # lazy import: few validators share their key with another node
    from ophion.producer.etcd_vote_store import EtcdVoteStore

    return EtcdVoteStore(
        store.endpoints, store.prefix, chain.genesis.hash, validator, config.consensus.vote_store_tls()
    )


def _mining(
    config: CoreConfig,
    spec: ChainSpec,
    assembler: Assembler,
    settings: MinerSettings,
    floor: FeeFloor,
    lanes: Lanes,
    entropy: Entropy,
) -> MiningControl:
    """Return the control of block production with proof of work, or on a development network.

    On a chain with a merge, the control has no sealer.
    """
    name = assembler.chain.engine.name
    if spec.terminal_total_difficulty is not None:
        return MiningControl(settings, floor, None, None, None, name)
    work_packages = WorkPackages(assembler, lanes.read)
    sealer: Sealer
    if not spec.is_dev:
        sealer = PowMiner(work_packages, lanes.mine, assembler, entropy, config.miner.threads)
    elif config.miner.block_period_s:
        from ophion.producer.interval_sealer import IntervalSealer

        sealer = IntervalSealer(assembler, config.miner.block_period_s)
    else:
        sealer = InstantSealer(assembler)
    return MiningControl(settings, floor, sealer, work_packages, None, name)
