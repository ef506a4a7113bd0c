"""The components that a development node with cheat codes uses instead of the standard components."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ophion.chain.block_builder import BlockBuilder
from ophion.chain.block_environment import chain_rules
from ophion.chain.chain import Chain
from ophion.chain.gas_price import FeeFloor
from ophion.chain.importer import Importer
from ophion.chain.queries import ChainQueries
from ophion.chainspec.genesis import Genesis
from ophion.chainspec.spec import ChainSpec
from ophion.dev.cheat_codes import DevNode, Identity
from ophion.dev.clock import DevClock
from ophion.dev.engine import DevEngine
from ophion.dev.head_control import restore_edit
from ophion.dev.sealer import DevSealer
from ophion.node.dev_options import DevOrder, DevPreset
from ophion.pool.pool import TxPool
from ophion.primitives.types import Hash32
from ophion.producer.block_assembly import Assembler, MinerSettings
from ophion.producer.mining_control import MiningControl
from ophion.producer.pow_miner import WorkPackages
from ophion.runtime.clock import Clock, Entropy
from ophion.runtime.thread_pools import Lanes

if TYPE_CHECKING:
    from ophion.dev.fork.remote_state import Fork
    from ophion.node.core_config import CoreConfig

_ANVIL_EPOCH_SLOTS = 32


class DevBuild:
    """Builds engine and clock of a development node first, and its other components after the chain is open."""

    def __init__(self, config: CoreConfig, spec: ChainSpec, clock: Clock, entropy: Entropy) -> None:
        self._config = config
        self._instance_id = entropy.token(32)
        self._balances = [(account.address, account.balance) for account in config.accounts]
        is_equal = config.miner.equal_timestamps or config.dev.preset is DevPreset.ANVIL
        self.engine = DevEngine(spec, is_equal, config.dev.is_merged)
        self.clock = DevClock(clock)
        self.fork: Fork | None = None
        self.base_root: Hash32 | None = None
        self.suggested_tip = config.dev.suggested_tip
        """Priority fee to suggest to clients; if None, the median of recent blocks."""

    @property
    def _starts_at_genesis(self) -> bool:
        """Whether time goes on from the timestamp of the genesis block, as in Anvil, and not from the wall clock."""
        dev = self._config.dev
        return dev.preset is DevPreset.ANVIL and (dev.timestamp is not None or dev.init_file is not None)

    @property
    def _epoch_slots(self) -> int:
        """Number of blocks between the head and `safe`."""
        dev = self._config.dev
        if dev.epoch_slots is not None:
            return dev.epoch_slots
        return _ANVIL_EPOCH_SLOTS if dev.preset is DevPreset.ANVIL else 0

    def relax(self, chain: Chain, genesis: Genesis) -> None:
        """Disable validation rules that hinder tests, begin at the fork or genesis number if any, and set the clock."""
        chain.rules = chain_rules(chain.spec, is_relaxed=True)
        chain.is_relaxed = True
        chain.has_gas_cap = self._config.dev.has_gas_cap
        chain.has_base_fee_in_free_calls = self._config.dev.preset is DevPreset.ANVIL
        if self._config.dev.fork is not None:
            from ophion.dev.fork.start import start_fork
            from ophion.node.dev_fork import opened_fork

            self.fork = opened_fork(self._config.dev.fork)
            self.base_root = start_fork(chain, self.fork, self._balances)
            self.clock.set_time(chain.head.timestamp)
        else:
            if self._config.dev.genesis_number:
                from ophion.dev.genesis_number import begin_at_number  # lazy import: few chains begin at a number

                begin_at_number(chain, genesis, self._config.dev.genesis_number)
            restore_edit(chain)
            if self._starts_at_genesis and chain.head.hash == chain.genesis.hash:
                self.clock.set_time(chain.head.timestamp)
        self.clock.last = chain.head.timestamp

    def finish(
        self,
        chain: Chain,
        importer: Importer,
        builder: BlockBuilder,
        queries: ChainQueries,
        pool: TxPool,
        assembler: Assembler,
        settings: MinerSettings,
        floor: FeeFloor,
        lanes: Lanes,
    ) -> tuple[MiningControl, DevNode]:
        """Build the block production and the cheat codes of a development node."""
        dev, period_s = self._config.dev, self._config.miner.block_period_s
        sealer = DevSealer(assembler, dev.automine and (dev.mines_both or not period_s), period_s)
        lanes.decoding.is_eager = True
        if self.fork is None and not self._config.storage.durable:
            sealer.write_lane = lanes.write
            sealer.block_priority = lanes.block_priority
        if dev.order is DevOrder.FIFO:
            pool.order_by_arrival()
        preset = None if dev.preset is None else dev.preset.value
        identity = Identity(preset, self._instance_id)
        node = DevNode(chain, importer, builder, queries, pool, assembler, self.engine, self.clock, sealer, identity)
        node.impersonates_all = dev.impersonates_all
        queries.epoch_slots = self._epoch_slots
        node.fork, node.base_root, node.balances = self.fork, self.base_root, self._balances
        packages = WorkPackages(assembler, lanes.read)
        return MiningControl(settings, floor, sealer, packages, None, self.engine.name), node
