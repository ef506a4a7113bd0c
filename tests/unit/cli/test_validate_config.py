"""Tests `ophion validate-config --besu`: the verdict on every option in a file and in the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from ophion.cli.main import main


def test_a_besu_file_is_reported_line_by_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config.toml"
    file.write_text('data-path="d"\ntx-pool="layered"\nXp2p-tls-enabled=false\nmax-peers=7\nstate-history=99\n')
    monkeypatch.setenv("BESU_P2P_PEER_UPPER_BOUND", "9")
    log_file = tmp_path / "log.xml"
    log_file.write_text("<Configuration><Loggers><Root level='INFO'/></Loggers></Configuration>")
    monkeypatch.setenv("LOG4J_CONFIGURATION_FILE", str(log_file))
    assert main(["validate-config", "--besu", str(file)]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "data-path honoured",
        "tx-pool no effect there is one transaction pool, ordered by price, without local priority",
        "Xp2p-tls-enabled honoured the default of Ophion",
        "max-peers honoured",
        "state-history honoured an option of Ophion",
        "BESU_P2P_PEER_UPPER_BOUND honoured as --max-peers",
        "LOG4J_CONFIGURATION_FILE honoured level, JSON format and file of the log",
        "7 settings: 6 honoured, 1 no effect, 0 refused, 0 unknown",
    ]


def test_what_stops_a_node_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "config.toml"
    file.write_text('security-module-provider="hsm"\ncolour="red"\nmax-peers="many"\nplugins=["a"]\n')
    assert main(["validate-config", "--besu", str(file)]) == 1
    out = capsys.readouterr().out
    assert "4 settings: 1 honoured, 0 no effect, 2 refused, 1 unknown" in out
    assert "Error: Unknown option in TOML configuration file: colour" in out
    assert "Error: 'security-module-provider' in TOML configuration file is not supported: the key is in a file" in out
    file.write_text('max-peers="many"\n')
    assert main(["validate-config", "--besu", str(file)]) == 1
    assert "Error: Invalid value for 'max-peers'" in capsys.readouterr().out


def test_settings_of_the_environment_do_not_stop_the_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config.toml"
    file.write_text('data-path="d"\n')
    monkeypatch.setenv("BESU_MAX_PEERS", "many")
    assert main(["validate-config", "--besu", str(file)]) == 1
    assert "Error: Invalid value for environment variable 'BESU_MAX_PEERS'" in capsys.readouterr().out
    assert main(["validate-config", "--config-file", str(file)]) == 1
    assert main(["validate-config", "--besu", str(tmp_path / "missing")]) == 1


def test_a_command_line_of_besu_is_accepted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "config.toml"
    file.write_text('data-path="d"\n')
    assert main(["besu", "validate-config", f"--config-file={file}", "--tx-pool=legacy", "--Xdns-enabled"]) == 0
    assert "Warning: Option '--tx-pool' has no effect" in capsys.readouterr().out
    assert main(["besu", "--version"]) == 0
