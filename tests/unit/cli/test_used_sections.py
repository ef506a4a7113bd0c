"""A command that reads few sections of the configuration behaves as if it had read all of them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from ophion.cli.arguments import read_arguments
from ophion.cli.command import Command, CommandFamily
from ophion.cli.command_table import FAMILIES, commands_of
from ophion.cli.option_loading import load_session
from ophion.cli.used_sections import read_used_sections
from ophion.node.config import NodeConfig
from ophion.node.datadir import DataConfig
from ophion.runtime.options import specs_of
from tests.conftest import ROOT

COMMANDS = [
    pytest.param(family, command, id=f"{family.name} {command.name}")
    for family in FAMILIES.values()
    for command in commands_of(family).values()
    if command.uses
]
EXPORT = ["export", "parquet", "--to=tables"]


@pytest.mark.parametrize(("family", "command"), COMMANDS)
def test_sections_have_the_values_that_the_whole_configuration_has(family: CommandFamily, command: Command) -> None:
    own = [f"{spec.flag}=1" for spec in specs_of(command.options) if spec.declaration.required]
    tokens = [*dict.fromkeys((family.name, command.name)), *own, "--data-path=elsewhere"]
    used = read_used_sections(tokens, {})
    assert used is not None
    arguments, settings = used
    assert arguments.command is command
    _, small = load_session(arguments, {}, settings)
    _, whole = load_session(read_arguments(tokens, NodeConfig), {}, NodeConfig)
    assert small.part(DataConfig).data_path == Path("elsewhere")
    for section in (*command.uses, *command.also_reads):
        assert small.part(section) == whole.part(section)
    assert small.settings.given.keys() == whole.settings.given.keys()


@pytest.mark.parametrize(
    ("tokens", "environ"),
    [
        ([], {}),
        (["dev"], {}),
        (["no-such-command"], {}),
        (["storage"], {}),
        ([*EXPORT, "--rpc-http-port=1"], {}),
        ([*EXPORT, "--no-such-option"], {}),
        ([*EXPORT, "--logging=DEBUG"], {}),
        ([*EXPORT, "--config-file=config.toml"], {}),
        (["--data-path=data", *EXPORT], {}),
        (["besu", *EXPORT], {}),
        (EXPORT, {"OPHION_DATA_PATH": "data"}),
        (EXPORT, {"BESU_LOGGING": "DEBUG"}),
        (EXPORT, {"LOG4J_CONFIGURATION_FILE": "log4j2.xml"}),
    ],
)
def test_other_command_lines_need_the_whole_configuration(tokens: list[str], environ: dict[str, str]) -> None:
    assert read_used_sections(tokens, environ) is None


def test_the_version_needs_no_section() -> None:
    used = read_used_sections(["--version"], {"HOME": "/"})
    assert used is not None
    arguments, settings = used
    assert arguments.asks("version")
    assert specs_of(settings) == ()


@pytest.mark.parametrize("file", sorted((ROOT / "src" / "ophion" / "cli").glob("*.py")), ids=lambda file: file.stem)
def test_a_command_names_every_section_that_it_reads(file: Path) -> None:
    """`session.part` finds a section only if a command of the file names it, or if no command names any."""
    read = {
        ast.unparse(node.args[0])
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "session.part"
    }
    families = [family for family in FAMILIES.values() if family.module == f"ophion.cli.{file.stem}"]
    commands = [command for family in families for command in commands_of(family).values() if command.uses]
    named = {section.__name__ for command in commands for section in (*command.uses, *command.also_reads)}
    if commands:
        assert read <= named
