"""The command line of Anvil: `ophion anvil …`, or a link with this name."""

from __future__ import annotations

import pytest

from ophion.cli.main import main


def test_the_word_starts_a_development_node_with_the_preset(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["anvil", "--print-command", "-p", "9545", "-a", "3"]) == 0
    line = capsys.readouterr().out
    for token in ("--dev-preset=anvil", "--rpc-http-port=9545", "--dev-accounts=3", "--rpc-ws-port=0"):
        assert token in line
    assert "--graphql-http-enabled=false" in line
    assert "--host-whitelist" not in line


@pytest.mark.parametrize("given", [["--host=0.0.0.0"], ["--host", "127.0.0.1,0.0.0.0"]])
def test_an_address_that_others_reach_is_served(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["anvil", "--print-command", *given]) == 0
    line = capsys.readouterr().out
    assert "--dev-unlocked-accounts=true" in line
    assert "--host-whitelist=*" in line


def test_the_variable_of_anvil_names_the_address(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ANVIL_IP_ADDR", "127.0.0.2")
    assert main(["anvil", "--print-command"]) == 0
    assert "--rpc-http-host=127.0.0.2" in capsys.readouterr().out
    assert main(["anvil", "--print-command", "--host=127.0.0.3"]) == 0
    assert "--rpc-http-host=127.0.0.3" in capsys.readouterr().out
    assert main(["dev", "--print-command"]) == 0
    assert "--rpc-http-host" not in capsys.readouterr().out


@pytest.mark.parametrize("asked", ["--version", "-V"])
def test_the_version_names_anvil_first(asked: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["anvil", asked]) == 0
    assert capsys.readouterr().out.startswith("anvil Version: 1.7.1\nophion/")


@pytest.mark.parametrize("asked", [["--help"], ["-h"], ["help"]])
def test_the_help_lists_the_options_of_anvil(asked: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["anvil", *asked]) == 0
    assert "Usage: anvil [OPTIONS] [COMMAND]" in capsys.readouterr().out


@pytest.mark.parametrize("given", [["mine"], ["--accounts=x"], ["--celo"], ["--unknown"], ["completions", "csh"]])
def test_misuse_ends_with_the_exit_code_of_anvil(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["anvil", *given]) == 2
    assert "Usage: anvil [OPTIONS] [COMMAND]" in capsys.readouterr().err
