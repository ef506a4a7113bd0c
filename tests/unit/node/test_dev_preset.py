"""The development preset is a list of ordinary options."""

from __future__ import annotations

import shlex

from ophion.node.config import PERM_WITHOUT_PERMISSIONS
from ophion.node.dev_preset import command_line, with_dev_preset, with_tokens
from ophion.runtime.options import problems_of, warnings_of
from tests.unit.node.command_line import loaded


def test_the_preset_switches_everything_on() -> None:
    config = with_dev_preset(loaded()).config
    assert config.network.name == "dev"
    assert config.http.enabled
    assert config.websocket.enabled
    assert config.page.enabled
    assert config.miner.enabled
    assert config.storage.temporary
    assert not config.storage.durable
    assert config.limits.max_unread_bytes == 128 * 1024 * 1024
    assert problems_of(config) == []


def test_given_options_win_over_the_preset() -> None:
    config = with_dev_preset(loaded("--rpc-http-port=9999", "--rpc-ws-enabled=false", "--durable-commits")).config
    assert config.http.port == 9999
    assert not config.websocket.enabled
    assert config.storage.durable


def test_a_given_data_path_is_kept() -> None:
    config = with_dev_preset(loaded("--data-path=here")).config
    assert not config.storage.temporary


def test_the_page_is_not_there_where_services_are_encrypted() -> None:
    config = with_dev_preset(loaded("--rpc-http-tls-enabled")).config
    assert not config.page.enabled
    assert not any("page" in problem for problem in problems_of(config))


def test_several_nodes_with_a_preset_need_only_different_ports_of_json_rpc() -> None:
    config = with_dev_preset(loaded("--dev-preset=anvil", "--rpc-http-port=9545")).config
    assert (config.http.port, config.websocket.port, config.graphql.port) == (9545, 0, 0)
    given = with_dev_preset(loaded("--dev-preset=hardhat", "--rpc-ws-port=9", "--graphql-http-enabled=false")).config
    assert (given.websocket.port, given.graphql.enabled) == (9, False)
    pantheon = with_dev_preset(loaded()).config
    assert (pantheon.websocket.port, pantheon.graphql.port) == (8546, 8547)


def test_the_printed_command_line_does_the_same_without_the_preset() -> None:
    preset = with_dev_preset(loaded("--rpc-http-port=1", "--miner-extra-data=0x01"))
    words = shlex.split(command_line(preset.given.values()))
    assert words[0] == "ophion"
    assert loaded(*words[1:]).config == preset.config


def test_what_belongs_to_something_that_is_switched_off_is_left_out() -> None:
    expected = warnings_of(with_dev_preset(loaded()))
    off = with_dev_preset(loaded("--miner-enabled=false", "--rpc-http-enabled=false", "--graphql-http-enabled=false"))
    assert warnings_of(off) == expected, "no warning about options that were not given"
    assert "miner-coinbase" not in off.given
    assert "rpc-http-api" not in off.given
    given = warnings_of(with_dev_preset(loaded("--rpc-http-enabled=false", "--rpc-http-port=1")))
    assert "--rpc-http-port will have no effect unless --rpc-http-enabled is defined on the command line." in given


def test_the_preset_causes_one_warning_which_the_command_hides() -> None:
    assert warnings_of(with_dev_preset(loaded())) == [PERM_WITHOUT_PERMISSIONS]


def test_options_of_the_command_are_added_unless_given() -> None:
    given = loaded("--rpc-http-port=9")
    assert with_tokens(given, []) is given
    assert with_tokens(given, ["--rpc-http-port=8", "--rpc-ws-port=7"]).config.http.port == 9
    assert with_tokens(given, ["--rpc-http-port=8", "--rpc-ws-port=7"]).config.websocket.port == 7
