"""Creates the engine of a chain specification."""

from __future__ import annotations

from ophion.chainspec.consensus_parameters import EngineKind
from ophion.chainspec.spec import ChainSpec
from ophion.consensus.engine import Engine
from ophion.errors import GenesisError


def engine_for(spec: ChainSpec, verifies_work: bool = True, equal_timestamps: bool = False) -> Engine:
    """Return the engine of a network.

    `verifies_work=False` skips the check of proof-of-work seals. With `equal_timestamps`, blocks that this node
    produces may have their parent's timestamp; development networks use this setting.
    """
    # each engine module is imported only when it is needed, so that the node starts faster
    engine: Engine
    if spec.engine is EngineKind.ETHASH:
        from ophion.consensus.pow import PowEngine

        engine = PowEngine(spec, verifies_work and not spec.is_dev, equal_timestamps)
    elif spec.engine is EngineKind.CLIQUE:
        from ophion.consensus.clique import CliqueEngine

        engine = CliqueEngine(spec)
        if spec.migrates_from_clique:
            from ophion.consensus.bft.engine import BftEngine
            from ophion.consensus.clique_to_qbft import MigrationEngine

            engine = MigrationEngine(engine, BftEngine(spec))
    elif spec.engine in (EngineKind.IBFT2, EngineKind.QBFT):
        from ophion.consensus.bft.engine import BftEngine

        engine = BftEngine(spec)
    else:
        raise GenesisError("Consensus mechanism ibft (IBFT 1) is not supported: use ibft2 or qbft", "config.ibft")
    if spec.terminal_total_difficulty is None:
        return engine
    from ophion.consensus.merge import MergeEngine

    return MergeEngine(spec, engine)
