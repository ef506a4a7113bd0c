"""Settings of Besu from file, environment and profile become options of Ophion."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from ophion.cli.arguments import read_arguments
from ophion.cli.option_loading import read_sources
from ophion.node.besu.settings import unread_variables
from ophion.node.config import NodeConfig
from ophion.peers.options import NatMethod, SyncMode
from ophion.runtime.options import load, specs_of, warnings_of

SPECS = specs_of(NodeConfig)


def _read(
    tmp_path: Path, *tokens: str, file: str = "", environ: Mapping[str, str] | None = None
) -> tuple[NodeConfig, list[str], list[str]]:
    path = tmp_path / "config.toml"
    path.write_text(file)
    problems: list[str] = []
    arguments = read_arguments(tokens, NodeConfig)
    given, warnings = read_sources(arguments, environ or {}, path if file else None, SPECS, problems)
    return load(NodeConfig, given).config, warnings, problems


@pytest.mark.parametrize("name", ["ENTERPRISE", "private"])
def test_a_profile_sets_what_no_other_source_sets(tmp_path: Path, name: str) -> None:
    config, warnings, problems = _read(tmp_path, f"--profile={name}", file="min-gas-price=7")
    assert (warnings, problems) == ([], [])
    assert config.miner.min_gas_price == 7
    assert config.http.max_connections == 300
    assert not config.peers.limit_remote
    assert _read(tmp_path, environ={"BESU_PROFILE": name})[0].miner.min_gas_price == 0
    assert _read(tmp_path, file=f'profile="{name}"')[0].miner.min_gas_price == 0
    assert _read(tmp_path, "--profile=STAKER")[2][0].startswith("Invalid value for option '--profile': expected one of")


def test_options_of_a_profile_cause_no_warning_of_their_own() -> None:
    problems: list[str] = []
    given, _ = read_sources(read_arguments(["--profile=PRIVATE"], NodeConfig), {}, None, SPECS, problems)
    assert warnings_of(load(NodeConfig, given)) == []


def test_values_that_only_besu_has(tmp_path: Path) -> None:
    file = """
sync-mode="CHECKPOINT"
nat-method="KUBERNETES"
rpc-http-api=["ETH","ENGINE","PLUGINS","WEB3"]
metrics-category=["BLOCKCHAIN","BLOCK_PROCESSING"]
logging-format="ECS"
net-restrict=["none"]
api-gas-price-percentile=60.0
"""
    config, warnings, problems = _read(tmp_path, file=file)
    assert problems == []
    assert config.peers.sync_mode is SyncMode.FULL
    assert config.peers.nat_method is NatMethod.NONE
    assert [group.name for group in config.http.groups] == ["ETH", "PLUGINS", "WEB3"]
    assert [category.name for category in config.metrics.categories] == ["BLOCKCHAIN"]
    assert config.logs.format.name == "JSON"
    assert config.access.gas_price_percentile == 60
    assert len(warnings) == 5
    assert any(warning.startswith("CHECKPOINT of 'sync-mode'") and "read as FULL" in warning for warning in warnings)
    assert any(warning.startswith("ENGINE of 'rpc-http-api'") and "left out" in warning for warning in warnings)


def test_checkpoint_is_a_value_of_this_client_with_its_own_option(tmp_path: Path) -> None:
    config, warnings, problems = _read(tmp_path, file='sync-mode="CHECKPOINT"\nsync-checkpoint="backup.tar"\n')
    assert (config.peers.sync_mode, config.peers.sync_checkpoint) == (SyncMode.CHECKPOINT, "backup.tar")
    assert (warnings, problems) == ([], [])


def test_both_spellings_in_one_file(tmp_path: Path) -> None:
    same = 'host-whitelist=["*"]\nhost-allowlist=["*"]\n'
    config, warnings, problems = _read(tmp_path, file=same)
    assert (config.access.host_allow_list, warnings, problems) == (("*",), [], [])
    config, warnings, problems = _read(tmp_path, file='host-whitelist=["a"]\nhost-allowlist=["b"]\n')
    assert (config.access.host_allow_list, problems) == (("a",), [])
    assert len(warnings) == 1
    renamed = "rpc-max-filters=5\nrpc-max-active-filters=6\n"
    assert _read(tmp_path, file=renamed)[0].limits.max_filters == 5


@pytest.mark.parametrize("source", ["environment", "file", "both"])
def test_a_genesis_file_wins_over_a_network_that_is_not_on_the_command_line(tmp_path: Path, source: str) -> None:
    settings = {"genesis-file": "genesis.json", "network": "mainnet"}
    environ = {f"BESU_{name.upper().replace('-', '_')}": text for name, text in settings.items()}
    file = "\n".join(f'{name}="{text}"' for name, text in settings.items())
    config, warnings, problems = _read(
        tmp_path, file="" if source == "environment" else file, environ={} if source == "file" else environ
    )
    assert (config.network.network, str(config.network.genesis_file), problems) == (None, "genesis.json", [])
    assert all("has no effect beside a genesis file" in warning for warning in warnings)
    on_line, _, _ = _read(tmp_path, "--network=dev", environ=environ)
    assert next(iter(on_line.network.problems())).startswith("--network option and --genesis-file option")


def test_variables_of_besu(tmp_path: Path) -> None:
    environ = {
        "BESU_P2P_PEER_UPPER_BOUND": "7",
        "BESU_DATA_STORAGE_FORMAT": "BONSAI",
        "BESU_XP2P_TLS_ENABLED": "true",
        "BESU_RPC_HTTP_PORT": "1234",
        "BESU_OPTS": "-Xmx1g",
        "LOG4J_CONFIGURATION_FILE": "log.xml",
        "BESU_TX_POOL": "",
    }
    config, warnings, problems = _read(tmp_path, environ=environ)
    assert (config.peers.max_peers, config.http.port) == (7, 1234)
    assert [warning.partition(":")[0] for warning in warnings] == [
        "Environment variable 'BESU_DATA_STORAGE_FORMAT' has no effect",
        "log.xml of environment variable 'LOG4J_CONFIGURATION_FILE' is not used",
    ]
    assert problems[0].startswith("Environment variable 'BESU_XP2P_TLS_ENABLED' is not supported: peer connections")
    assert list(unread_variables(environ, SPECS)) == ["BESU_OPTS"]
