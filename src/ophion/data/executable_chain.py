"""A stored chain with its rules, for datasets that execute blocks or recover seals."""

from __future__ import annotations

from ophion.chain.block import ommers_of
from ophion.chain.block_environment import block_env
from ophion.chain.chain import Chain
from ophion.chainspec.genesis import Genesis
from ophion.consensus.registry import engine_for
from ophion.errors import CommandError, GenesisError, MissingStateError, StorageError
from ophion.native.exceptions import MissingState
from ophion.native.store import Store
from ophion.native.tracing import TracedBlock


class ExecutableChain:
    """Blocks of a chain with the states before them."""

    def __init__(self, store: Store, genesis: Genesis, dataset: str) -> None:
        """Open the chain. If the genesis belongs to another network, the error names `dataset`."""
        self._store = store
        try:
            self.chain = Chain.open(store, genesis, engine_for(genesis.spec))
        except GenesisError as error:
            raise CommandError(
                f"The dataset {dataset} needs the genesis file of the network (--genesis-file). {error}"
            ) from error

    def traced_blocks(self, first: int, last: int) -> list[TracedBlock]:
        """Return blocks with their parent states. The genesis block is omitted, because it has no transactions."""
        return [self._traced_block(number) for number in range(max(first, 1), last + 1)]

    def _traced_block(self, number: int) -> TracedBlock:
        chain = self.chain
        header, parent = chain.canonical(number), chain.canonical(number - 1)
        body = None if header is None else chain.store.body(header.hash)
        if header is None or parent is None or body is None:
            raise StorageError(f"Block {number} is missing from the database; run `ophion storage check`.")
        env = block_env(chain.spec, chain.rules, header.header, chain.engine.beneficiary(header))
        rewards = chain.engine.rewards(header, ommers_of(body)) or [(chain.engine.beneficiary(header), 0)]
        try:
            state = self._store.state(parent.header.state_root)
        except MissingState as error:
            raise MissingStateError(
                f"The state before block {number} is pruned. Export blocks whose states are stored (--start-block), or"
                " use a node that keeps every state (--state-history)."
            ) from error
        return TracedBlock(parent=state, env=env, body=body, hash=header.hash, rewards=rewards)
