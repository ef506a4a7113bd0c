"""Tests the choice of the engine for a chain specification."""

from __future__ import annotations

from typing import Any

import pytest

from ophion.chainspec.dev_network import dev_genesis
from ophion.consensus.bft.engine import BftEngine
from ophion.consensus.clique import CliqueEngine
from ophion.consensus.engine import BlockPreferences
from ophion.consensus.engine_factory import engine_for
from ophion.consensus.merge import MergeEngine
from ophion.consensus.pow import PowEngine
from ophion.errors import GenesisError, InvalidHeader
from tests.unit.consensus.stories import FAR, MemoryChain, genesis


@pytest.mark.parametrize(
    ("config", "kind"),
    [
        ({"ethash": {}}, PowEngine),
        ({"clique": {}}, CliqueEngine),
        ({"ibft2": {}}, BftEngine),
        ({"qbft": {}}, BftEngine),
        ({"ethash": {}, "terminalTotalDifficulty": 5}, MergeEngine),
        ({"clique": {}, "terminalTotalDifficulty": 5}, MergeEngine),
    ],
)
def test_each_engine_is_found(config: dict[str, Any], kind: type) -> None:
    assert isinstance(engine_for(genesis(config).spec), kind)


def test_the_first_generation_of_ibft_is_refused() -> None:
    with pytest.raises(GenesisError, match="IBFT 1"):
        engine_for(genesis({"ibft": {}}).spec)


def test_only_the_dev_network_goes_without_work_unless_asked() -> None:
    dev = dev_genesis("petersburg")
    other = genesis({"ethash": {"fixeddifficulty": 100}}, difficulty=100)
    for first, verifies_work, is_accepted in ((dev, True, True), (other, False, True), (other, True, False)):
        engine = engine_for(first.spec, verifies_work)
        chain = MemoryChain(engine, first)
        block = engine.hashed(engine.prepare(chain.genesis, BlockPreferences(timestamp=1, author=bytes(20)), chain))
        if is_accepted:
            engine.verify(block, chain.genesis, chain, FAR)
        else:
            with pytest.raises(InvalidHeader, match="mix hash"):
                engine.verify(block, chain.genesis, chain, FAR)
