"""Declaring options as dataclass fields, and finding them again."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping
from functools import cache
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ophion.runtime.options.values import Check, Kind, Reader, kind_of

_KEY = "ophion.option"


class Declaration(Struct, frozen=True):
    """What the author of a field said about it."""

    flags: tuple[str, ...]
    help: str
    metavar: str | None
    parse: Reader | None
    check: Check | None
    bare: bool
    hidden: bool
    required: bool
    needs: tuple[str, Any] | None

    def named(self, names: Mapping[str, str]) -> Declaration:
        """The same with what stands in braces replaced."""
        return replace(
            self,
            flags=tuple(flag.format_map(names) for flag in self.flags),
            help=self.help.format_map(names),
            needs=self.needs and (self.needs[0].format_map(names), self.needs[1]),
        )


class OptionSpec(Struct, frozen=True):
    """One option of a configuration class: its declaration, and where its value goes."""

    declaration: Declaration
    kind: Kind
    default: Any
    section: str
    path: tuple[str, ...]
    """Attribute names from the root of the configuration to the value."""

    @property
    def flag(self) -> str:
        """The spelling used in messages."""
        return self.declaration.flags[0]

    @property
    def name(self) -> str:
        """The TOML key: the first long flag without its dashes."""
        return self.names[0]

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that works in a file or, in capitals, in the environment: long flags only."""
        return tuple(flag[2:] for flag in self.declaration.flags if flag.startswith("--"))

    @property
    def metavar(self) -> str:
        """How the value is called; empty for a flag whose value nobody writes, such as --help."""
        return self.kind.metavar if self.declaration.metavar is None else self.declaration.metavar

    @property
    def takes_bare(self) -> bool:
        """Whether the flag may stand alone: booleans (true), and lists that may be empty."""
        return self.kind.is_bool or self.declaration.bare


def option(
    *flags: str,
    help: str,
    default: Any = dataclasses.MISSING,
    metavar: str | None = None,
    parse: Reader | None = None,
    check: Check | None = None,
    bare: bool = False,
    hidden: bool = False,
    needs: str | tuple[str, Any] | None = None,
) -> Any:
    """A dataclass field that is an option; without a default it must be given.

    `parse` reads one value from text and `check` judges the finished value; both raise `ValueError` with the reason.
    `bare` lets a list option stand without a value. `hidden` keeps it out of `--help`. `needs` names the main switch
    (or switch and value) without which this option has no effect; giving it nevertheless earns a warning.

    Flags, `needs` and help may hold names in braces, which a class replaces by its own (`names: ClassVar`): so several
    services share one declaration.
    """
    if not flags or not flags[0].startswith("--"):
        raise TypeError("an option needs a long flag first")
    declaration = Declaration(
        flags=flags,
        help=help,
        metavar=metavar,
        parse=parse,
        check=check,
        bare=bare,
        hidden=hidden,
        required=default is dataclasses.MISSING,
        needs=(needs, True) if isinstance(needs, str) else needs,
    )
    return dataclasses.field(default=default, kw_only=True, metadata={_KEY: declaration})


def specs_of(cls: type, path: tuple[str, ...] = ()) -> tuple[OptionSpec, ...]:
    """Every option of a configuration class and of its parts, in the order of declaration."""
    return _collected(cls, path)


@cache
def _collected(cls: type, path: tuple[str, ...]) -> tuple[OptionSpec, ...]:
    hints = hints_of(cls)
    names = getattr(cls, "names", None)
    found: list[OptionSpec] = []
    for field in dataclasses.fields(cls):
        declaration = field.metadata.get(_KEY)
        if declaration is not None:
            if names is not None:
                declaration = declaration.named(names)
            kind = kind_of(hints[field.name], declaration.parse)
            default = None if declaration.required else field.default
            found.append(OptionSpec(declaration, kind, default, section_of(cls), (*path, field.name)))
        elif is_part(hints[field.name]):
            found.extend(specs_of(hints[field.name], (*path, field.name)))
    return tuple(found)


def hints_of(cls: type) -> Mapping[str, Any]:
    """The types of a class's fields."""
    return _hints(cls)


@cache
def _hints(cls: type) -> Mapping[str, Any]:
    """Once per class: resolving annotations is the dearest part of reading a command line."""
    return typing.get_type_hints(cls)


def is_part(annotation: Any) -> bool:
    """Whether a field of this type is a sub-configuration."""
    return isinstance(annotation, type) and dataclasses.is_dataclass(annotation)


def section_of(cls: type) -> str:
    """Heading under which the options of a class are shown: the first line of its docstring."""
    return (cls.__doc__ or cls.__name__).strip().splitlines()[0].rstrip(".")
