"""Commands and the session that a command receives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from ophion.errors import ConfigError
from ophion.runtime.options import Loaded, Options, part_of, problems_of

T = TypeVar("T", bound=Options)


class CommandSession(Struct, frozen=True):
    """One run of a command: global options, arguments, warnings."""

    settings: Loaded[Any]
    """The global configuration."""
    words: tuple[str, ...] = ()
    """Arguments that are not options: files, folders."""
    config_file: Path | None = None
    """The configuration file that was read."""
    warnings: tuple[str, ...] = ()
    """Settings that have no effect or another value than given."""
    problems: tuple[str, ...] = ()
    """What is wrong with the global options, for a command that reports it itself."""

    def part(self, cls: type[T]) -> T:
        """Return one part of the global configuration; `ConfigError` for problems of that part."""
        part = part_of(self.settings.config, cls)
        if problems := problems_of(part):
            raise ConfigError(problems)
        return part


class NoOptions(Options):
    """A command without options of its own."""


class Command(Struct, frozen=True):
    """One command: `name` is the last word, `run` returns the exit code."""

    name: str
    summary: str
    run: Callable[[Any, CommandSession], int]
    options: type[Options] = NoOptions
    """Configuration class of the command's own options."""
    uses: tuple[type[Options], ...] = ()
    """Parts of the global configuration that its help shows."""
    words: str | None = None
    """Placeholder of its arguments in the help; None where it has none."""
    examples: tuple[str, ...] = ()
    reports_problems: bool = False
    """Whether it runs although global options are wrong, and reports `CommandSession.problems`."""


class Family(Struct, frozen=True):
    """A first word of the command line.

    `module` is imported when the word is used and holds `COMMANDS`. A command with the name of its family is called by
    one word; a further word chooses another command of the family.
    """

    name: str
    summary: str
    module: str
    hidden: bool = False
