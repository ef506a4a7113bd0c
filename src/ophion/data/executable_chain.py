"""A stored chain with its rules, for datasets that execute blocks or recover seals."""

from __future__ import annotations

from ophion.chain.block_environment import chain_rules
from ophion.chain.chain import Chain
from ophion.chain.traced_block import traced_block_of
from ophion.chainspec.genesis import Genesis
from ophion.consensus.engine_factory import engine_for
from ophion.errors import CommandError, GenesisError, MissingStateError, StorageError
from ophion.native.store import Store
from ophion.native.tracing import TracedBlock


class ExecutableChain:
    """A stored chain whose blocks can be executed again on their parent states."""

    def __init__(self, store: Store, genesis: Genesis, dataset: str, is_default: bool = False) -> None:
        """Open the chain in `store`. If `genesis` belongs to another network, the error message names `dataset`, the
        dataset to read. `is_default` means that no genesis file was given. In this case, the presets of development
        networks and the chains of `Chain(path)` are recognised.
        """
        try:
            self.chain = Chain.open(store, genesis, engine_for(genesis.spec))
        except GenesisError as error:
            found = _dev_chain(store) if is_default else None
            if found is None:
                raise CommandError(
                    f"The dataset {dataset} needs the genesis file of the network (--genesis-file). {error}"
                ) from error
            self.chain = found

    def traced_blocks(self, first: int, last: int) -> list[TracedBlock]:
        """Return the blocks `first` to `last`, each with the state of its parent. The genesis block is omitted, because
        it has no transactions.
        """
        return [self._traced_block(number) for number in range(max(first, 1), last + 1)]

    def _traced_block(self, number: int) -> TracedBlock:
        header = self.chain.canonical(number)
        try:
            found = None if header is None else traced_block_of(self.chain, header)
        except MissingStateError as error:
            raise MissingStateError(
                f"The state before block {number} is pruned. Export blocks whose states are stored (--start-block), or"
                " use a node that keeps every state (--state-history)."
            ) from error
        if found is None:
            raise StorageError(f"Block {number} is missing from the database; run `ophion storage check`.")
        return found


def _dev_chain(store: Store) -> Chain | None:
    """Return the chain of a development network with the default accounts; None for any other chain."""
    # lazy import: only development networks without a genesis file need these modules
    from ophion.dev.engine import DevEngine
    from ophion.node.config import NodeConfig
    from ophion.node.dev_genesis import possible_dev_geneses

    for genesis, is_merged in possible_dev_geneses(store, lambda network, dev: NodeConfig(network=network, dev=dev)):
        try:
            chain = Chain.open(store, genesis, DevEngine(genesis.spec, False, is_merged))
        except GenesisError:
            continue
        chain.rules, chain.is_relaxed = chain_rules(chain.spec, is_relaxed=True), True
        return chain
    return None
