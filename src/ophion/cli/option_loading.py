"""From a sorted command line to the finished options of a command and of the node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from ophion.cli.arguments import Arguments, Basics
from ophion.cli.command import Session
from ophion.errors import ConfigError
from ophion.runtime.options import Given, Loaded, Options, load, read_environment, read_file, specs_of

T = TypeVar("T", bound=Options)


def load_session(arguments: Arguments, environ: Mapping[str, str], settings: type[Options]) -> tuple[Any, Session]:
    """The command's own options and its session; `ConfigError` holds everything that is wrong with either.

    The environment and the file set global options only: those of a command belong to one call of it.
    """
    problems = list(arguments.problems)
    given = [*arguments.settings, *read_environment(environ, specs_of(settings))]
    file = _config_file(arguments, environ, problems)
    if file is not None:
        try:
            given += read_file(file, specs_of(settings))
        except ConfigError as error:
            problems.extend(error.problems)
    loaded: Loaded[Any] | None = _load(settings, given, problems)
    own: Loaded[Any] | None = None
    if arguments.command is not None:
        own = _load(arguments.command.options, arguments.own, problems)
    if problems or loaded is None:
        raise ConfigError(problems)
    return None if own is None else own.config, Session(loaded, tuple(arguments.words), file)


def _config_file(arguments: Arguments, environ: Mapping[str, str], problems: list[str]) -> Path | None:
    specs = [spec for spec in specs_of(Basics) if spec.name == "config-file"]
    basics = _load(Basics, [*arguments.basics, *read_environment(environ, specs)], problems)
    return None if basics is None else basics.config.config_file


def _load(cls: type[T], given: Iterable[Given], problems: list[str]) -> Loaded[T] | None:
    try:
        return load(cls, given)
    except ConfigError as error:
        problems.extend(error.problems)
        return None
