"""Commands and the session that a command receives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from ophion.errors import ConfigError
from ophion.runtime.options import LoadedConfig, Options, part_of, problems_of

T = TypeVar("T", bound=Options)


class CommandSession(Struct, frozen=True):
    """The input of one run of a command: global options, arguments and warnings."""

    settings: LoadedConfig[Any]
    """The global configuration of the node."""
    words: tuple[str, ...] = ()
    """Arguments that are not options, such as files and folders."""
    config_file: Path | None = None
    """The configuration file that was read, if any."""
    warnings: tuple[str, ...] = ()
    """Warnings about settings that have no effect or a changed value."""
    problems: tuple[str, ...] = ()
    """Errors in the global options. Only commands with `reports_problems` receive them."""

    def part(self, cls: type[T]) -> T:
        """Return the section `cls` of the node's configuration. Raises `ConfigError` for problems in this section."""
        part = part_of(self.settings.config, cls)
        if problems := problems_of(part):
            raise ConfigError(problems)
        return part


class NoOptions(Options):
    """Option class of a command that has no options."""


class Command(Struct, frozen=True):
    """One command. `name` is the last word of the command, and `run` returns the exit code."""

    name: str
    summary: str
    run: Callable[[Any, CommandSession], int]
    options: type[Options] = NoOptions
    """Configuration class of the command's own options."""
    uses: tuple[type[Options], ...] = ()
    """Sections of the node's configuration that the command reads and its help shows. If a command names sections here
    or in `also_reads`, it reads no other section (`used_sections.py`).
    """
    also_reads: tuple[type[Options], ...] = ()
    """Sections that the command reads and its help does not show."""
    words: str | None = None
    """Placeholder of the arguments in the help. None if the command has no arguments."""
    examples: tuple[str, ...] = ()
    reports_problems: bool = False
    """Whether the command runs even if global options are wrong, and reports `CommandSession.problems`."""


class CommandFamily(Struct, frozen=True):
    """A family of commands: the first word of the command line.

    `module` is imported when this word is used; its `COMMANDS` are the commands of the family. A command with the same
    name as its family needs no second word.
    """

    name: str
    summary: str
    module: str
    hidden: bool = False
