"""Reads a command line with only those sections of the configuration that its command uses.

The options of all packages are in sixty modules, which take a fifth of the start time of `ophion export`. `ophion
export` reads only two sections. If its command line gives no other option, it starts without the other modules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import new_class
from typing import Any, Final, cast

from msgspec import field

from ophion.cli.arguments import Arguments, read_arguments
from ophion.cli.command import Command
from ophion.cli.command_table import FAMILIES, commands_of
from ophion.runtime.options import Options
from ophion.runtime.options.sources import PREFIXES

_VARIABLES: Final = (*PREFIXES, "LOG4J_CONFIGURATION_FILE")
_VERSION: Final = (["--version"], ["-V"])


def read_used_sections(tokens: Sequence[str], environ: Mapping[str, str]) -> tuple[Arguments, type[Options]] | None:
    """Return the split command line and a configuration class with the sections that its command uses.

    Returns None if the whole configuration is needed: if a variable with an option of the node is set, if the command
    line has other options, a configuration file or a mistake, or if it does not begin with a command that names its
    sections.
    """
    if any(name.startswith(_VARIABLES) for name in environ):
        return None
    sections: tuple[type[Options], ...] = ()
    if list(tokens) not in _VERSION:
        command = _command(tokens)
        if command is None or not command.uses:
            return None
        sections = (*command.uses, *command.also_reads)
    settings = _configuration(sections)
    arguments = read_arguments(tokens, settings)
    is_enough = not arguments.problems and not arguments.besu and not arguments.asks("config-file")
    return (arguments, settings) if is_enough else None


def _command(tokens: Sequence[str]) -> Command | None:
    """Return the command if its words begin the command line."""
    family = FAMILIES.get(tokens[0]) if tokens else None
    if family is None:
        return None
    commands = commands_of(family)
    return commands.get(tokens[1] if len(tokens) > 1 else "") or commands.get(family.name)


def _configuration(sections: Sequence[type[Options]]) -> type[Options]:
    """Return a configuration class with these sections as its parts."""
    names = [f"section_{number}" for number in range(len(sections))]

    def fill(body: dict[str, Any]) -> None:
        body["__doc__"] = "Options: the sections that a command uses."
        body["__annotations__"] = dict(zip(names, sections, strict=True))
        body.update((name, field(default_factory=section)) for name, section in zip(names, sections, strict=True))

    return cast("type[Options]", new_class("UsedSections", (Options,), exec_body=fill))
