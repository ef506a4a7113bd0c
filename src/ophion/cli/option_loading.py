"""Builds the options of a command and of the node from flags, environment and file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from ophion.cli.arguments import Arguments, Basics
from ophion.cli.command import CommandSession
from ophion.errors import ConfigError
from ophion.node.besu.values import adapt_values
from ophion.node.compatibility_profiles import compat_settings
from ophion.runtime.options import (
    LoadedConfig,
    Options,
    OptionSource,
    OptionSpec,
    OptionTexts,
    load,
    read_environment,
    read_file,
    specs_of,
)
from ophion.runtime.options.sources import PREFIXES

T = TypeVar("T", bound=Options)


def load_session(
    arguments: Arguments, environ: Mapping[str, str], settings: type[Options]
) -> tuple[Any, CommandSession]:
    """Return the command's own options and its session. Raises `ConfigError` with all problems.

    Environment and file set only global options. A command's own options come from the command line.
    """
    command = arguments.command
    found: list[str] = []
    file = _config_file(arguments, environ, found)
    given, warnings = read_sources(arguments, environ, file, specs_of(settings), found)
    loaded: LoadedConfig[Any] | None = _load(settings, given, found)
    problems = list(arguments.problems)
    if command is None or not command.reports_problems:
        problems += found
    own = None if command is None else _load(command.options, arguments.own, problems)
    if problems:
        raise ConfigError(problems)
    session = CommandSession(loaded or load(settings, ()), tuple(arguments.words), file, tuple(warnings), tuple(found))
    return None if own is None else own.config, session


def read_sources(
    arguments: Arguments,
    environ: Mapping[str, str],
    file: Path | None,
    specs: Sequence[OptionSpec],
    problems: list[str],
) -> tuple[list[OptionTexts], list[str]]:
    """Read flags, environment and file, and translate Besu's names and values. Returns settings and warnings, and
    appends to `problems`.
    """
    given = [*arguments.settings, *read_environment(environ, specs)]
    foreign = list(arguments.besu)
    warnings: list[str] = []

    def is_besu_key(key: str, texts: tuple[str, ...], label: str) -> bool:
        from ophion.node.besu.settings import read_besu_setting  # lazy import: only keys of Besu need this module

        setting = read_besu_setting(key, texts, OptionSource.FILE, label)
        if setting is not None:
            foreign.append(setting)
        return setting is not None

    if file is not None:
        try:
            given += read_file(file, specs, is_besu_key, warnings)
        except ConfigError as error:
            problems.extend(error.problems)
    if any(name.startswith(PREFIXES[1:]) for name in environ):
        from ophion.node.besu.settings import read_besu_environment

        foreign += read_besu_environment(environ, specs)
    if foreign:
        from ophion.node.besu.settings import translate

        translation = translate(foreign, specs)
        given = _first_of_each(given, translation.given)
        warnings += translation.warnings
        problems.extend(translation.problems)
    given += compat_settings(tuple(given), specs)
    if any(item.spec.name == "besu-conventions" for item in given):
        from ophion.node.besu.dev_mining import dev_mining_settings  # lazy import: few command lines have this option

        given += dev_mining_settings(tuple(given), specs)
    if any(item.spec.name == "besu-home" for item in given):
        from ophion.node.besu.home import home_settings  # lazy import: few command lines have this option

        given += home_settings(tuple(given), specs)
    if "LOG4J_CONFIGURATION_FILE" in environ:
        from ophion.node.besu.log4j import read_log4j

        log_settings, found = read_log4j(environ, specs)
        given += log_settings
        warnings += found
    given, adapted = adapt_values(given)
    return given, [*warnings, *adapted]


def _first_of_each(given: list[OptionTexts], translated: Iterable[OptionTexts]) -> list[OptionTexts]:
    """Add translated Besu settings. If the same source (flags, environment or file) also sets Ophion's own option,
    Ophion's option has priority.
    """
    present = {(item.spec.path, item.source) for item in given}
    return [*given, *(item for item in translated if (item.spec.path, item.source) not in present)]


def _config_file(arguments: Arguments, environ: Mapping[str, str], problems: list[str]) -> Path | None:
    specs = [spec for spec in specs_of(Basics) if spec.name == "config-file"]
    basics = _load(Basics, [*arguments.basics, *read_environment(environ, specs)], problems)
    return None if basics is None else basics.config.config_file


def _load(cls: type[T], given: Iterable[OptionTexts], problems: list[str]) -> LoadedConfig[T] | None:
    try:
        return load(cls, given)
    except ConfigError as error:
        problems.extend(error.problems)
        return None
