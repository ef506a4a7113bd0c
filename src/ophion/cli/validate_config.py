"""`ophion validate-config`: checks a configuration file without starting a node."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

from ophion.cli.arguments import Arguments
from ophion.cli.command import Command, CommandSession
from ophion.cli.option_loading import read_sources
from ophion.cli.untrusted_text import escape_untrusted
from ophion.errors import ConfigError
from ophion.node.besu.log4j import VARIABLE as LOG4J_VARIABLE
from ophion.node.besu.option_table import BesuOption, OptionEffect, besu_options, find_besu_option
from ophion.node.besu.settings import besu_variables, unread_variables
from ophion.node.config import NodeConfig
from ophion.runtime.operator_files import NotRegularFile, table_of
from ophion.runtime.options import Options, load, option, specs_of

_UNKNOWN: Final = "unknown"


class ValidateOptions(Options):
    """Options: the configuration file that `ophion validate-config` checks."""

    besu: Path | None = option(
        "--besu", default=None, help="Configuration file of Besu: show what Ophion does with each option."
    )


class CheckedOption(Struct, frozen=True):
    """One option of the checked configuration file, as a line of the report."""

    name: str
    verdict: str
    explanation: str


def validate(options: ValidateOptions, session: CommandSession) -> int:
    """Report on a Besu file, or confirm that the file of --config-file is valid."""
    if options.besu is not None:
        return _report(options.besu)
    if session.problems:
        raise ConfigError(session.problems)
    if session.config_file is None:
        raise ConfigError("Missing required option: '--config-file=FILE'")
    for warning in session.warnings:
        print(f"Warning: {warning}")
    print(
        "TOML config file is valid on basic inspection. Further dependencies between related options are checked when"
        " Ophion starts."
    )
    return 0


def _report(file: Path) -> int:
    """Print the effect of each option in the configuration file and the environment. Returns 1 if a node would not
    start with these options.
    """
    checked = [*_checked_file(file), *_checked_environment()]
    width = max((len(line.name) for line in checked), default=0)
    for line in checked:
        print(f"{line.name:<{width}}  {line.verdict:<9}  {line.explanation}".rstrip())
    verdicts = (*(verdict.value for verdict in OptionEffect), _UNKNOWN)
    counts = {verdict: sum(line.verdict == verdict for line in checked) for verdict in verdicts}
    print(f"{len(checked)} settings: {', '.join(f'{count} {verdict}' for verdict, count in counts.items())}")
    problems: list[str] = []
    given, warnings = read_sources(Arguments(), os.environ, file, specs_of(NodeConfig), problems)
    try:
        load(NodeConfig, given)
    except ConfigError as error:
        problems.extend(error.problems)
    for warning in warnings:
        # skip warnings about options without effect, because the table already shows them
        if "has no effect: " not in warning:
            print(f"Warning: {warning}")
    for problem in problems:
        print(f"Error: {problem}")
    return 1 if problems else 0


def _checked_file(file: Path) -> Iterator[CheckedOption]:
    try:
        table = table_of(file)
    except (OSError, NotRegularFile, ValueError) as error:
        raise ConfigError(f"Unable to read the Besu configuration file {file}: {error}") from None
    own = _own_names()
    for key, value in table.items():
        row = find_besu_option(key)
        if row is not None:
            yield _checked(key, row, value)
        elif key in own:
            yield CheckedOption(key, OptionEffect.HONOURED.value, "an option of Ophion")
        else:
            yield CheckedOption(escape_untrusted(key), _UNKNOWN, "neither Besu nor Ophion has this option")


def _checked(name: str, row: BesuOption, value: object) -> CheckedOption:
    values = value if isinstance(value, list) else [value]
    if row.verdict is OptionEffect.REFUSED and row.accepted and {str(item).lower() for item in values} <= row.accepted:
        return CheckedOption(name, OptionEffect.HONOURED.value, "the default of Ophion")
    return CheckedOption(name, row.verdict.value, row.explanation)


def _checked_environment() -> Iterator[CheckedOption]:
    own = {name.upper().replace("-", "_"): name for name in _own_names()}
    rows = {name.upper().replace("-", "_"): row for name, row in besu_options().items()}
    for variable, text in besu_variables(os.environ):
        suffix = variable.partition("_")[2]
        if suffix in rows:
            yield _checked(variable, rows[suffix], text)
        elif suffix in own:
            yield CheckedOption(variable, OptionEffect.HONOURED.value, f"as --{own[suffix]}")
    if LOG4J_VARIABLE in os.environ:
        yield CheckedOption(LOG4J_VARIABLE, OptionEffect.HONOURED.value, "level, JSON format and file of the log")
    for variable in unread_variables(os.environ, specs_of(NodeConfig)):
        yield CheckedOption(
            escape_untrusted(variable), OptionEffect.IGNORED.value, "Ophion does not read this variable"
        )


def _own_names() -> set[str]:
    return {name for spec in specs_of(NodeConfig) for name in spec.names}


COMMANDS = (
    Command(
        "validate-config",
        "Check a TOML configuration file, or show what Ophion does with the options of a Besu file.",
        validate,
        ValidateOptions,
        examples=(
            "ophion validate-config --config-file=config.toml",
            "ophion validate-config --besu config.toml",
        ),
        reports_problems=True,
    ),
)
