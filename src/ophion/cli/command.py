"""What a command is, and what it is given when it runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from ophion.errors import ConfigError
from ophion.runtime.options import Loaded, Options, part_of, problems_of

T = TypeVar("T", bound=Options)


class CommandSession(Struct, frozen=True):
    """The surroundings of one run of a command."""

    settings: Loaded[Any]
    """The global configuration, whatever of it the command cares for."""
    words: tuple[str, ...] = ()
    """Arguments that are not options: files, folders."""
    config_file: Path | None = None
    """The configuration file that was read."""
    warnings: tuple[str, ...] = ()
    """Settings that have no effect or another value than given."""
    problems: tuple[str, ...] = ()
    """What is wrong with the global options, for a command that reports it itself."""

    def part(self, cls: type[T]) -> T:
        """The part of the global configuration that this command needs, checked; the rest is not its business."""
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
    """Parts of the global configuration that it listens to, for its help."""
    words: str | None = None
    """How its arguments are called in the help, or None when it takes none."""
    examples: tuple[str, ...] = ()
    reports_problems: bool = False
    """Whether it runs although global options are wrong, and reports `CommandSession.problems`."""


class Family(Struct, frozen=True):
    """A first word of the command line.

    `module` is imported when the word is used and holds `COMMANDS`. A family whose only command has the family's name
    is called by one word.
    """

    name: str
    summary: str
    module: str
    hidden: bool = False
