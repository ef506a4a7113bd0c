"""Tests the report of paths that a user cannot use."""

from __future__ import annotations

import getpass
import os
import pwd
from pathlib import Path

import pytest

from ophion.cli.arguments import read_arguments
from ophion.cli.main import main
from ophion.cli.option_loading import read_sources
from ophion.node.besu.path_access import UnknownUser, missing_access
from ophion.node.config import NodeConfig
from ophion.runtime.options import load, specs_of

ME = getpass.getuser()


def _config(*tokens: str) -> NodeConfig:
    problems: list[str] = []
    given, _ = read_sources(read_arguments(tokens, NodeConfig), {}, None, specs_of(NodeConfig), problems)
    assert problems == []
    return load(NodeConfig, given).config


@pytest.mark.parametrize(
    ("data_mode", "genesis_mode", "expected"),
    [
        (0o700, 0o400, ()),
        (0o500, 0o400, ("data:READ_WRITE",)),
        (0o700, 0o044, ("genesis.json:READ",)),
        (0o077, 0o044, ("data:READ_WRITE", "genesis.json:READ")),
        (None, None, ("data:READ_WRITE",)),
    ],
)
def test_paths_without_permission_are_named(
    tmp_path: Path, data_mode: int | None, genesis_mode: int | None, expected: tuple[str, ...]
) -> None:
    data, genesis = tmp_path / "data", tmp_path / "genesis.json"
    if data_mode is not None:
        data.mkdir(mode=data_mode)
        data.chmod(data_mode)
    if genesis_mode is not None:
        genesis.touch()
        genesis.chmod(genesis_mode)
    found = list(missing_access(_config(f"--data-path={data}", f"--genesis-file={genesis}"), ME))
    assert found == [f"PERMISSION_CHECK_PATH:{tmp_path}/{line}" for line in expected]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files to others")
def test_permissions_of_groups_and_others_count(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    config = _config(f"--data-path={data}", "--network=dev")
    daemon = pwd.getpwnam("daemon")
    for owner, group, mode, is_enough in (
        (daemon.pw_uid, 12345, 0o700, True),
        (12345, daemon.pw_gid, 0o070, True),
        (12345, 12345, 0o007, True),
        (12345, 12345, 0o770, False),
        (12345, daemon.pw_gid, 0o707, False),
    ):
        os.chown(data, owner, group)
        data.chmod(mode)
        assert (not list(missing_access(config, "daemon"))) == is_enough, oct(mode)


def test_an_unknown_user_is_an_error(tmp_path: Path) -> None:
    config = _config(f"--data-path={tmp_path}")
    with pytest.raises(UnknownUser, match="has no user 'no-such-user'"):
        list(missing_access(config, "no-such-user"))
    with pytest.raises(UnknownUser, match="one user, not 2"):
        list(missing_access(config, "a", "b"))


@pytest.mark.parametrize("words", [[], ["operator", "generate-blockchain-config", "--config-file=c", "--to=made"]])
def test_the_command_prints_and_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["besu", "--print-paths-and-exit", ME, f"--data-path={tmp_path}/data", *words]) == 0
    assert capsys.readouterr().out == f"PERMISSION_CHECK_PATH:{tmp_path}/data:READ_WRITE\n"
    assert list(tmp_path.iterdir()) == []
    assert main([f"--print-paths-and-exit={ME}x", f"--data-path={tmp_path}"]) == 1
    assert f"has no user '{ME}x'" in capsys.readouterr().err
