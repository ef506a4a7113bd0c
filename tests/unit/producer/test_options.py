"""Tests consensus options."""

from __future__ import annotations

from collections import deque

import pytest

from ophion.consensus.bft_form_choices import HeaderFormChoice, WireProfileChoice
from ophion.errors import ConfigError
from ophion.node.config import NodeConfig
from ophion.producer.options import ConsensusConfig
from ophion.runtime.options import load, problems_of, read_flag, specs_of


def test_rounds_have_a_longest_length() -> None:
    assert ConsensusConfig() == ConsensusConfig(max_round_timeout_s=60.0, follows_others=True)
    options = {flag: spec for spec in specs_of(NodeConfig) for flag in spec.declaration.flags}
    flags = ("--bft-max-round-timeout=7.5", "--bft-early-round-change=false")
    loaded = load(NodeConfig, [read_flag(flag, deque(), options) for flag in flags])
    assert loaded.config.consensus == ConsensusConfig(max_round_timeout_s=7.5, follows_others=False)


def test_a_length_of_nothing_is_refused() -> None:
    (problem,) = problems_of(NodeConfig(consensus=ConsensusConfig(max_round_timeout_s=0)))
    assert problem == "Invalid value for option '--bft-max-round-timeout': 0 is not above 0"


def test_the_wire_profile_is_chosen_or_left_to_the_peers() -> None:
    assert ConsensusConfig().wire_profile is WireProfileChoice.AUTO
    options = {flag: spec for spec in specs_of(NodeConfig) for flag in spec.declaration.flags}
    for choice in WireProfileChoice:
        loaded = load(NodeConfig, [read_flag(f"--bft-wire-profile={choice.value}", deque(), options)])
        assert loaded.config.consensus.wire_profile is choice
    with pytest.raises(ConfigError, match="--bft-wire-profile"):
        load(NodeConfig, [read_flag("--bft-wire-profile=modern", deque(), options)])


def test_the_form_of_headers_is_chosen_or_left_to_the_network() -> None:
    assert ConsensusConfig().header_form is HeaderFormChoice.AUTO
    options = {flag: spec for spec in specs_of(NodeConfig) for flag in spec.declaration.flags}
    for choice in HeaderFormChoice:
        loaded = load(NodeConfig, [read_flag(f"--bft-header-form={choice.value}", deque(), options)])
        assert loaded.config.consensus.header_form is choice
    with pytest.raises(ConfigError, match="--bft-header-form"):
        load(NodeConfig, [read_flag("--bft-header-form=long", deque(), options)])
