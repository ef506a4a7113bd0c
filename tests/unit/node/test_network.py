"""Tests the choice of the network."""

from __future__ import annotations

from pathlib import Path

import pytest

from ophion.chainspec.dev_network import DEV_CHAIN_ID
from ophion.errors import ConfigError, GenesisError
from ophion.node.network import NetworkConfig, load_genesis
from ophion.runtime.operator_files import MAX_BYTES
from ophion.runtime.options import OptionSource, OptionTexts, load, problems_of, specs_of

GENESIS = '{"config":{"chainId":7,"ethash":{}},"difficulty":"0x1","gasLimit":"0x1000000","alloc":{}}'


def configured(**texts: str) -> NetworkConfig:
    specs = {spec.path[0]: spec for spec in specs_of(NetworkConfig)}
    given = [
        OptionTexts(specs[name], (text,), OptionSource.FLAG, f"option '{specs[name].flag}'")
        for name, text in texts.items()
    ]
    return load(NetworkConfig, given).config


def test_without_options_the_network_is_dev() -> None:
    assert load_genesis(NetworkConfig()).spec.chain_id == DEV_CHAIN_ID
    assert NetworkConfig().name == "dev"
    assert load_genesis(configured(network="DEV")).spec.is_dev


def test_an_older_dev_network_is_another_genesis() -> None:
    assert load_genesis(configured(dev_fork="Petersburg")) != load_genesis(NetworkConfig())


def test_a_genesis_file_replaces_the_built_in_network(tmp_path: Path) -> None:
    path = tmp_path / "genesis.json"
    path.write_text(GENESIS)
    config = NetworkConfig(genesis_file=path)
    assert (load_genesis(config).spec.chain_id, config.name) == (7, None)


def test_numbers_of_a_genesis_file_can_be_replaced(tmp_path: Path) -> None:
    path = tmp_path / "genesis.json"
    path.write_text(GENESIS)
    assert load_genesis(NetworkConfig(genesis_file=path, overrides=(("CHAINID", 9),))).spec.chain_id == 9


def test_a_public_network_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="Invalid value for option '--network': Network mainnet is a public network"):
        configured(network="mainnet")
    with pytest.raises(ConfigError, match="Unknown network moon"):
        configured(network="moon")


def test_a_fork_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ConfigError, match="Invalid value for option '--dev-fork': expected one of \\[frontier,"):
        configured(dev_fork="spoon")


def test_options_that_exclude_each_other_are_named() -> None:
    config = NetworkConfig(network="dev", genesis_file=Path("genesis.json"), dev_fork="osaka")
    assert problems_of(config) == [
        "--network option and --genesis-file option can't be used at the same time.  Please refer to CLI reference for"
        " more details about this constraint.",
        "--dev-fork belongs to --network=dev and can't be used with --genesis-file.",
    ]


def test_a_missing_file_is_known_before_anything_starts(tmp_path: Path) -> None:
    absent = tmp_path / "absent.json"
    assert problems_of(NetworkConfig(genesis_file=absent)) == [
        f"Unable to load genesis file. {absent}: No such file or directory"
    ]
    absent.write_text("{}")
    assert problems_of(NetworkConfig(genesis_file=absent)) == []


def test_a_missing_or_bad_file_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(GenesisError, match=r"^Unable to load genesis file\. .*absent\.json: No such file"):
        load_genesis(NetworkConfig(genesis_file=tmp_path / "absent.json"))
    bad = tmp_path / "bad.json"
    bad.write_text('{"config":{"ethash":{}}, "gasLimit": 1}')
    with pytest.raises(GenesisError, match=r"bad\.json: Invalid genesis block configuration, missing value for 'diff"):
        load_genesis(NetworkConfig(genesis_file=bad))


def test_a_file_of_gigabytes_is_refused_before_it_is_read(tmp_path: Path) -> None:
    huge = tmp_path / "genesis.json"
    with huge.open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(
        GenesisError, match=r"Unable to load genesis file\. .*/genesis\.json: more than 1073741824 bytes"
    ):
        load_genesis(NetworkConfig(genesis_file=huge))


def test_a_file_larger_than_other_files_of_operators_is_read(tmp_path: Path) -> None:
    file = tmp_path / "genesis.json"
    file.write_text(GENESIS + " " * (2 * MAX_BYTES))
    assert load_genesis(NetworkConfig(genesis_file=file)).spec.chain_id == 7
