"""Every engine implements the engine protocol."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from ophion.consensus.engine import Engine, Finality
from ophion.consensus.engine_factory import engine_for
from tests.unit.consensus.stories import genesis

CONFIGS: list[dict[str, Any]] = [
    {"ethash": {}},
    {"clique": {}},
    {"ibft2": {}},
    {"qbft": {}},
    {"ethash": {}, "terminalTotalDifficulty": 0},
]


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: "+".join(config))
def test_an_engine_has_every_member_with_the_same_parameters(config: dict[str, Any]) -> None:
    engine = engine_for(genesis(config).spec)
    assert isinstance(engine.name, str)
    assert isinstance(engine.finality, Finality)
    for name, declared in vars(Engine).items():
        if inspect.isfunction(declared) and not name.startswith("_"):
            wanted = list(inspect.signature(declared).parameters)[1:]
            assert list(inspect.signature(getattr(engine, name)).parameters) == wanted, name
