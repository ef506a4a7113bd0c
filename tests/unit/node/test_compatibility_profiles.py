from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from ophion.chainspec.genesis import Genesis
from ophion.cli.arguments import read_arguments
from ophion.cli.option_loading import read_sources
from ophion.node.compatibility_profiles import COMPAT_TABLE, CompatibilityProfile
from ophion.node.config import NodeConfig
from ophion.node.dev_genesis import preset_genesis
from ophion.node.network import load_genesis
from ophion.rpc.dispatch.error_wording import ErrorWording
from ophion.runtime.options import load, specs_of, warnings_of

SPECS = specs_of(NodeConfig)
EXPECTED: Mapping[CompatibilityProfile, tuple[ErrorWording, int, int, int, int, int]] = {
    CompatibilityProfile.PANTHEON_1_2: (ErrorWording.ORIGINAL, 2018, 1000, 25, 0, 0),
    CompatibilityProfile.BESU_21: (ErrorWording.ORIGINAL, 1337, 1000, 25, 10**18, 0),
    CompatibilityProfile.BESU_26: (ErrorWording.ORIGINAL, 1337, 1000, 25, 10**18, 5000),
    CompatibilityProfile.GETH_1_13: (ErrorWording.GETH, 1337, 1, 50, 10**18, 0),
    CompatibilityProfile.GOQUORUM: (ErrorWording.GETH, 1337, 0, 50, 0, 0),
}
"""Expected defaults by profile: error wording, chain id of dev, minimum price, peers, fee cap, range of log queries."""


def _config(*tokens: str) -> NodeConfig:
    problems: list[str] = []
    given, warnings = read_sources(read_arguments(tokens, NodeConfig), {}, None, SPECS, problems)
    assert (warnings, problems) == ([], [])
    loaded = load(NodeConfig, given)
    assert warnings_of(loaded) == []
    return loaded.config


def _genesis(config: NodeConfig) -> Genesis:
    return preset_genesis(config) if config.dev.is_used else load_genesis(config.network)


@pytest.mark.parametrize("profile", CompatibilityProfile)
def test_a_profile_sets_the_defaults_of_its_client(profile: CompatibilityProfile) -> None:
    config = _config(f"--compat={profile.value}")
    assert (
        config.access.error_wording,
        _genesis(config).spec.chain_id,
        config.miner.min_gas_price,
        config.peers.max_peers,
        config.pool.fee_cap,
        config.limits.max_logs_range,
    ) == EXPECTED[profile]


@pytest.mark.parametrize("name", COMPAT_TABLE)
def test_every_row_is_an_option_with_valid_values(name: str) -> None:
    assert any(name in spec.names for spec in SPECS)
    for value in COMPAT_TABLE[name].values():
        _config("--rpc-http-enabled", f"--{name}={value}")


def test_the_dev_network_of_each_age() -> None:
    old, new = (_genesis(_config(f"--compat={name}")) for name in ("besu-21", "besu-26"))
    assert old.spec.fork_at(1, 1).name == "petersburg"
    assert new.spec.fork_at(1, 1).name == "london"
    assert new.spec.initial_base_fee == 0


def test_pantheon_answers_errors_with_status_400() -> None:
    asked = {profile: _config(f"--compat={profile.value}").http.errors_as_400 for profile in CompatibilityProfile}
    assert [profile for profile, is_400 in asked.items() if is_400] == [CompatibilityProfile.PANTHEON_1_2]


def test_other_sources_come_first() -> None:
    config = _config("--compat=besu-26", "--min-gas-price=7", "--dev-chain-id=5")
    assert config.miner.min_gas_price == 7
    assert _genesis(config).spec.chain_id == 5
    assert _config().process.compat is None


def test_a_genesis_file_is_not_changed(tmp_path: Path) -> None:
    file = tmp_path / "genesis.json"
    file.write_text('{"config":{"chainId":9,"ethash":{}},"difficulty":"0x1","gasLimit":"0x1fffff","alloc":{}}')
    config = _config("--compat=besu-26", f"--genesis-file={file}")
    assert list(config.network.problems()) == []
    assert _genesis(config).spec.chain_id == 9


def test_profiles_of_besu_mine_continuously_on_the_dev_network() -> None:
    mining = ("--miner-enabled", "--miner-coinbase=0x" + "11" * 20)
    configs = {profile: _config(f"--compat={profile.value}", *mining) for profile in CompatibilityProfile}
    assert {profile for profile, config in configs.items() if config.miner.block_period_s == 1} == {
        CompatibilityProfile.PANTHEON_1_2,
        CompatibilityProfile.BESU_21,
        CompatibilityProfile.BESU_26,
    }
    assert _config("--compat=besu-26", "--block-period=0", *mining).miner.block_period_s == 0


def test_a_genesis_file_gets_no_options_of_the_dev_network() -> None:
    config = _config("--compat=besu-26", "--genesis-file=genesis.json")
    assert config.miner.block_period_s == 0
