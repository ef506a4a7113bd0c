"""Declares options as fields of a configuration class."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache, cached_property
from typing import Any, Final, dataclass_transform

from msgspec import Struct, StructMeta, field
from msgspec.structs import replace

from ophion.runtime.options.values import Check, Reader, ValueKind, kind_of

REQUIRED: Final = object()
"""Marks an option without a default."""


class Declaration(Struct, frozen=True):
    """The arguments of `option()`."""

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
        """Return the declaration with the names in braces replaced."""
        return replace(
            self,
            flags=tuple(flag.format_map(names) for flag in self.flags),
            help=self.help.format_map(names),
            needs=self.needs and (self.needs[0].format_map(names), self.needs[1]),
        )


class Declared(Struct, frozen=True):
    """Placeholder of an option in the body of a configuration class."""

    declaration: Declaration
    default: Any
    annotation: str = ""
    module: str = ""
    """Module in which the annotation is evaluated."""


class OptionSpec(Struct, frozen=True, dict=True):
    """One option of a configuration class: its declaration and the path of its value."""

    declaration: Declaration
    declared: Declared
    section: str
    path: tuple[str, ...]
    """Attribute names from the root of the configuration to the value."""

    @cached_property
    def kind(self) -> ValueKind:
        """Return how the value is read. Computed at first use, because evaluating all annotations would double the time
        to read a command line.
        """
        annotation = eval(self.declared.annotation, vars(sys.modules[self.declared.module]))
        return kind_of(annotation, self.declaration.parse)

    @property
    def default(self) -> Any:
        """Return the default value; None for a required option."""
        return None if self.declaration.required else self.declared.default

    @property
    def flag(self) -> str:
        """Return the flag as messages show it."""
        return self.declaration.flags[0]

    @cached_property
    def name(self) -> str:
        """Return the TOML key: the first long flag without its dashes."""
        return self.names[0]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Return the names of the option in files: its long flags without dashes. Variables use capitals."""
        return tuple(flag[2:] for flag in self.declaration.flags if flag.startswith("--"))

    @property
    def metavar(self) -> str:
        """Return the placeholder for the value in help texts; empty for a flag without a value, such as --help."""
        return self.kind.metavar if self.declaration.metavar is None else self.declaration.metavar

    @property
    def takes_bare(self) -> bool:
        """Return whether the flag may appear without a value: a boolean becomes true, and some lists become empty."""
        return self.kind.is_bool or self.declaration.bare


def option(
    *flags: str,
    help: str,
    default: Any = REQUIRED,
    metavar: str | None = None,
    parse: Reader | None = None,
    check: Check | None = None,
    bare: bool = False,
    hidden: bool = False,
    needs: str | tuple[str, Any] | None = None,
) -> Any:
    """Declare an option. An option without a default is required.

    `parse` reads one value from text and `check` validates the result; both raise `ValueError` with the reason. `bare`
    allows a list option without a value. `hidden` removes the option from `--help`. `needs` names the main switch (or
    switch and value, or switch and several values) of this option. If the switch is off, the option has no effect and
    causes a warning.

    Flags, `needs` and help may contain names in braces, which each class replaces (`names: ClassVar`), so that services
    share a declaration.
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
        required=default is REQUIRED,
        needs=(needs, True) if isinstance(needs, str) else needs,
    )
    return Declared(declaration, default)


class _OptionsMeta(StructMeta):
    """Moves the declarations out of the class body before msgspec creates the fields."""

    declared: Mapping[str, Declared]
    """Options by field name; options of base classes come first."""
    parts: Mapping[str, type[Options]]

    def __new__(mcs, name: str, bases: tuple[type, ...], body: dict[str, Any], **settings: Any) -> _OptionsMeta:
        own = {member: value for member, value in body.items() if isinstance(value, Declared)}
        factories = {member: getattr(value, "default_factory", None) for member, value in body.items()}
        for member, value in own.items():
            body[member] = field() if value.default is REQUIRED else value.default
        made: _OptionsMeta = super().__new__(mcs, name, bases, body, kw_only=True, **settings)
        declared: dict[str, Declared] = {}
        parts: dict[str, Any] = {}
        for base in reversed(bases):
            declared |= getattr(base, "declared", {})
            parts |= getattr(base, "parts", {})
        for member, value in own.items():
            declared[member] = replace(value, annotation=made.__annotations__[member], module=made.__module__)
        made.declared = declared
        made.parts = parts | {member: part for member, part in factories.items() if isinstance(part, _OptionsMeta)}
        return made


@dataclass_transform(field_specifiers=(option, field), frozen_default=True, kw_only_default=True)
class Options(Struct, metaclass=_OptionsMeta, frozen=True):
    """A configuration class: its fields are options or further configuration classes."""


def specs_of(cls: type[Options], path: tuple[str, ...] = ()) -> tuple[OptionSpec, ...]:
    """Return the options of a configuration class and its parts, in declaration order."""
    return _collected(cls, path)


@cache
def _collected(cls: type[Options], path: tuple[str, ...]) -> tuple[OptionSpec, ...]:
    names: Mapping[str, str] | None = getattr(cls, "names", None)
    section = section_of(cls)
    found: list[OptionSpec] = []
    for name, one in cls.declared.items():
        declaration = one.declaration if names is None else one.declaration.named(names)
        found.append(OptionSpec(declaration, one, section, (*path, name)))
    for name, part in cls.parts.items():
        found.extend(specs_of(part, (*path, name)))
    return tuple(found)


def section_of(cls: type) -> str:
    """Return the heading of a configuration class in help texts: the first line of its docstring, up to a colon."""
    return (cls.__doc__ or cls.__name__).strip().splitlines()[0].partition(":")[0].rstrip(".")
