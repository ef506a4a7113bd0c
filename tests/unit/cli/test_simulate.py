"""Tests `ophion simulate` in process."""

from __future__ import annotations

import pytest

from ophion.cli.main import main
from ophion.cli.simulate import SimulatedProtocol, SimulateOptions, replay_command


def test_good_seeds_end_with_a_line_of_figures(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--seeds=3", "--storm=5", "--protocol=qbft"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("3 seeds run, ")
    assert ", 0 violations (" in out


def test_a_diagram_is_drawn_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--seed=4", "--storm=5", "--diagram", "--rows=10"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:3] == ["time", "V0", "V1"]
    assert len(lines) == 13
    assert lines[-1].startswith("1 seed run")


def test_too_many_liars_are_found_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--seeds=40", "--byzantine=2", "--processes=1", "--rows=5"]) == 1
    out = capsys.readouterr().out
    assert "replay: ophion simulate --protocol=ibft2 --seed=" in out
    assert "V0" in out
    assert " 0 violations" not in out


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--byzantine=4"], "leaves no honest validator"),
        (["--validators=0"], "--validators"),
        (["--request-timeout=0"], "must be above 0"),
        (["--protocol=clique", "--block-period=2"], "no effect"),
        (["--protocol=pow"], "--protocol"),
    ],
)
def test_bad_options_are_one_clear_error(
    arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", *arguments]) == 1
    assert problem in capsys.readouterr().err


def test_the_replay_command_repeats_options_that_are_not_defaults() -> None:
    options = SimulateOptions(protocol=SimulatedProtocol.QBFT, byzantine=1, storm=3.0, max_timeout=9.0)
    assert replay_command(7, options) == (
        "ophion simulate --protocol=qbft --seed=7 --validators=4 --byzantine=1 --storm=3 --max-timeout=9 --diagram"
    )
