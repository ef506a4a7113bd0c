"""The table of Besu options is complete, consistent and applied."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from ophion.cli.arguments import Arguments, Basics, read_arguments
from ophion.cli.option_loading import read_sources
from ophion.node.besu.option_table import BesuOption, OptionEffect, besu_options, find_besu_option
from ophion.node.config import NodeConfig
from ophion.runtime.options import specs_of

OWN = {name for cls in (Basics, NodeConfig) for spec in specs_of(cls) for name in spec.names}
OUTSIDE_THE_TREE = {"Xhelp", "profile"}
COUNTS = {
    "1.0.0": 51,
    "1.3.0": 72,
    "1.5.0": 106,
    "21.1.0": 121,
    "22.10.0": 152,
    "24.1.0": 169,
    "25.12.0": 185,
    "26.8.0": 205,
}
"""Number of keys in the file with all options of each Besu release. A release also has options that the file lacks."""


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def _rows(verdict: OptionEffect) -> Iterator[BesuOption]:
    return (row for row in besu_options().values() if row.verdict is verdict)


def test_the_table_covers_every_release() -> None:
    assert len(besu_options()) == 573
    for version, keys in COUNTS.items():
        known = [
            row
            for row in besu_options().values()
            if row.first and _version(row.first) <= _version(version) <= _version(row.last)
        ]
        assert len(known) >= keys, version


def test_every_row_is_well_formed() -> None:
    for row in besu_options().values():
        assert re.fullmatch(r"[A-Za-z][A-Za-z0-9-]+", row.name), row
        assert bool(row.first) == bool(row.last)
        if row.first:
            assert _version("1.0.0") <= _version(row.first) <= _version(row.last)
        if row.verdict is OptionEffect.HONOURED:
            assert row.target in OWN | OUTSIDE_THE_TREE, row
        else:
            assert row.reason, row
            assert not row.reason.endswith("."), row


def test_ignored_and_refused_names_are_not_options_of_ophion() -> None:
    accepted_silently = {"privacy-enable-database-migration"}
    for verdict in (OptionEffect.IGNORED, OptionEffect.REFUSED):
        assert {row.name for row in _rows(verdict)} & OWN <= accepted_silently


def _read(*tokens: str) -> tuple[Arguments, list[str], list[str]]:
    arguments = read_arguments(tokens, NodeConfig)
    problems = list(arguments.problems)
    _, warnings = read_sources(arguments, {}, None, specs_of(NodeConfig), problems)
    return arguments, warnings, problems


def test_an_ignored_option_costs_one_warning_in_every_spelling() -> None:
    for row in _rows(OptionEffect.IGNORED):
        if row.name in OWN:
            continue
        value = "true" if row.is_switch else "7"
        for tokens in ([f"--{row.name}={value}"], [f"--{row.name}", value]):
            arguments, warnings, problems = _read(*tokens, "blocks", "import", "--from=f")
            assert problems == []
            assert warnings == [f"Option '--{row.name}' has no effect: {row.reason}."]
            assert arguments.command is not None


def test_a_switch_may_stand_alone_and_swallows_no_command() -> None:
    switches = ("--tx-pool-disable-locals", "--auto-log-bloom-caching-enabled", "--Xdns-enabled")
    arguments, warnings, problems = _read(*switches, "blocks", "import", "--from=f")
    assert (len(warnings), problems) == (2, [])
    assert arguments.command is not None
    assert arguments.command.name == "import"


def test_a_refused_option_is_a_problem_unless_its_value_changes_nothing() -> None:
    for row in _rows(OptionEffect.REFUSED):
        _, warnings, problems = _read(f"--{row.name}=something")
        assert warnings == []
        assert problems == [f"Option '--{row.name}' is not supported: {row.reason}."]
        for value in row.accepted:
            assert _read(f"--{row.name}={value.upper()}")[1:] == ([], [])


def test_renamed_options_set_their_target() -> None:
    specs = specs_of(NodeConfig)
    for row in _rows(OptionEffect.HONOURED):
        if row.target == row.name:
            continue
        given, _ = read_sources(read_arguments([f"--{row.name}=1"], NodeConfig), {}, None, specs, [])
        assert [item.spec.name for item in given] == [row.target] or row.target in given[0].spec.names


@pytest.mark.parametrize("name", ["plugin-anything", "Xplugin-other-enabled"])
def test_options_of_plugins_are_refused(name: str) -> None:
    row = find_besu_option(name)
    assert row is not None
    assert row.verdict is OptionEffect.REFUSED
    assert find_besu_option("no-such-option") is None
