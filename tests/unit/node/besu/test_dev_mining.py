from __future__ import annotations

import pytest

from ophion.cli.arguments import read_arguments
from ophion.cli.option_loading import read_sources
from ophion.node.config import NodeConfig
from ophion.runtime.options import load, specs_of


@pytest.mark.parametrize(
    ("tokens", "period"),
    [
        (("--besu-conventions",), 1),
        (("--besu-conventions", "--network=dev"), 1),
        (("--besu-conventions", "--block-period=0"), 0),
        (("--besu-conventions", "--genesis-file=genesis.json"), 0),
        (("--besu-conventions=false",), 0),
        ((), 0),
    ],
)
def test_the_block_period_of_a_besu_command_line(tokens: tuple[str, ...], period: int) -> None:
    specs = specs_of(NodeConfig)
    problems: list[str] = []
    given, _ = read_sources(read_arguments(tokens, NodeConfig), {}, None, specs, problems)
    assert problems == []
    assert load(NodeConfig, given).config.miner.block_period_s == period
