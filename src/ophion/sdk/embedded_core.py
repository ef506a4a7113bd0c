"""`EmbeddedCore`: the parts of a development node, without listeners and without threads.

It is built by `node/build.py` like every node. Its lanes run their jobs in the calling thread. Its time does not follow
the wall clock: each block is one second after its parent, so that runs are repeatable.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import finalize

from ophion.chainspec.genesis import Genesis
from ophion.native.crypto import PrivateKey
from ophion.node.build import NodeCore, build_core
from ophion.runtime.clock import SystemClock, SystemEntropy
from ophion.runtime.thread_pools import InlineLanes
from ophion.sdk.chain_config import ChainConfig
from ophion.sdk.database import close_database, open_database
from ophion.sdk.loop_runner import LoopRunner
from ophion.sdk.uncommitted_blocks import UncommittedBlocks

if TYPE_CHECKING:
    from ophion.dev.cheat_codes import DevNode
    from ophion.sdk.rpc_dispatch import RpcDispatch

T = TypeVar("T")


class ChainClock:
    """A clock whose wall time stands still. Monotonic time is real."""

    def __init__(self, wall: float) -> None:
        self._wall = wall

    def now(self) -> float:
        return self._wall

    monotonic = staticmethod(SystemClock().monotonic)


class EmbeddedCore:
    """Chain, pool and producer of a development node, and the event loop that runs them."""

    def __init__(
        self, config: ChainConfig, genesis: Genesis, path: Path | None, clock: ChainClock | SystemClock, interval: int
    ) -> None:
        self.config = config
        self.genesis = genesis
        self._is_on_disk = path is not None
        self.runner = LoopRunner()
        self.store, release = open_database(path)
        self._finalizer = finalize(self, close_database, self.runner, self.store, release)
        self.lanes = InlineLanes()
        self.clock = clock
        self.node_key = PrivateKey(b"\1" * 32)  # this public test key is harmless, because the node has no peers
        self.core: NodeCore = self.runner.run(self._build())
        dev = self.core.dev
        assert dev is not None, "the configuration enables the cheat codes"
        self.dev: DevNode = dev
        dev.mines_failing = False  # refuse failing transactions with their reason
        if isinstance(clock, ChainClock):
            dev.clock.interval = interval
        if dev.fork is not None:
            dev.fork.waits_always = True
        self._secrets = {one.address: one.private_key for one in config.accounts}
        self._dispatch: RpcDispatch | None = None
        self._creation = threading.RLock()
        self._lock = threading.RLock()
        """Prevents the fast path while another thread runs the event loop."""
        self._blocks = UncommittedBlocks(dev)
        self._runs = 0
        """Number of runs of the event loop. Each run may have changed any setting."""
        self._saved_runs: dict[int, int] = {}
        """Value of `_runs` at each snapshot."""

    async def _build(self) -> NodeCore:
        entropy = SystemEntropy()
        return build_core(self.config, self.genesis, self.store, self.node_key, self.lanes, self.clock, entropy)

    # --- event loop and fast path ---------------------------------------------------------------

    @property
    def _is_direct(self) -> bool:
        """Whether transactions may take the fast path now."""
        sealer = self.dev.sealer
        return (
            not self._is_on_disk
            and sealer.is_automatic
            and not self.runner.has_thread
            and not len(self.core.pool)
            and not sealer.head_lock.locked()
            and self.dev.fork is None
        )

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Write the blocks that are only in memory, then run a coroutine on the event loop."""
        if self.runner.has_thread:
            return self.runner.run(work)
        with self._lock:
            try:
                self.runner.check()
                self.commit_blocks()
            except BaseException:
                work.close()
                raise
            return self.runner.run(work)

    def commit_blocks(self) -> None:
        """Write the blocks that are only in memory."""
        with self._lock:
            self._runs += 1
            if self._blocks.top is not None:
                self.runner.run(self.dev.add_built(self._blocks.take()))

    def start_thread(self) -> None:
        """Run the event loop in a thread from now on. The fast path is off while this thread runs."""
        with self._lock:
            self.commit_blocks()
            self.runner.start_thread()

    # --- JSON-RPC -------------------------------------------------------------------------------

    @property
    def dispatch(self) -> RpcDispatch:
        """JSON-RPC methods of the node; created at first use."""
        self.runner.check()
        # use a separate lock: this thread may wait for a helper thread that needs the runner's lock
        with self._creation:
            if self._dispatch is None:
                # lazy import: a chain that is used only through its own methods starts faster
                from ophion.sdk.rpc_dispatch import RpcDispatch

                self._dispatch = RpcDispatch(self)
        return self._dispatch

    def close(self) -> None:
        """Close loop and database; a temporary database is deleted."""
        if self._dispatch is not None and self.runner.is_owner:
            self._dispatch.close()
        self._dispatch = None
        fork = self.__dict__["dev"].fork if "dev" in self.__dict__ else None
        if fork is not None:
            fork.close()
        self._finalizer()
        # break the reference cycles now, because states would keep the database open until the garbage collector runs
        for part in ("core", "dev", "lanes", "_blocks"):
            self.__dict__.pop(part, None)
        if self._is_on_disk:
            gc.collect()
