"""Tests the home directory of Besu."""

from __future__ import annotations

from pathlib import Path

import pytest

from ophion.cli.arguments import read_arguments
from ophion.cli.option_loading import read_sources
from ophion.node.besu.home import home_of
from ophion.node.config import NodeConfig
from ophion.runtime.options import load, specs_of


@pytest.mark.parametrize(
    ("program", "home"),
    [
        ("/opt/besu/bin/besu", "/opt/besu"),
        ("/srv/besu-24.5.4/bin/besu", "/srv/besu-24.5.4"),
        ("/usr/local/bin/besu", None),
        ("/opt/besu/besu", None),
        ("/besu", None),
    ],
)
def test_the_home_is_above_the_folder_of_the_program(program: str, home: str | None) -> None:
    assert home_of(program) == (None if home is None else Path(home))


@pytest.mark.parametrize(
    ("tokens", "environ", "expected"),
    [
        ([], {}, "/opt/besu"),
        (["--data-path=flag"], {}, "flag"),
        ([], {"BESU_DATA_PATH": "variable"}, "variable"),
        (["--config-file=config.toml"], {}, "file"),
    ],
)
def test_the_home_is_the_data_path_where_nothing_else_chooses_it(
    tokens: list[str], environ: dict[str, str], expected: str, tmp_path: Path
) -> None:
    file = tmp_path / "config.toml"
    file.write_text('data-path = "file"\n')
    problems: list[str] = []
    arguments = read_arguments(["--besu-home=/opt/besu", *tokens], NodeConfig)
    given, _ = read_sources(
        arguments, environ, file if tokens == ["--config-file=config.toml"] else None, SPECS, problems
    )
    assert problems == []
    assert load(NodeConfig, given).config.data.data_path == Path(expected)


SPECS = specs_of(NodeConfig)
