"""Builds a configuration from the values of all sources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from ophion.errors import ConfigError
from ophion.runtime.options.declare import Options, OptionSpec, specs_of
from ophion.runtime.options.sources import OptionSource, OptionTexts

T = TypeVar("T", bound=Options)


class LoadedConfig(Struct, Generic[T], frozen=True):
    """A configuration and the options that were set, keyed by option name."""

    config: T
    given: Mapping[str, OptionTexts]

    def is_given(self, flag: str) -> bool:
        """Return whether this option was set on the command line, in the environment or in the file."""
        return flag.removeprefix("--") in self.given


def load(cls: type[T], given: Iterable[OptionTexts], problems: Iterable[str] = ()) -> LoadedConfig[T]:
    """Build a configuration from values of all sources; flag wins over environment, environment over file.

    `problems` were found while reading the sources. The `ConfigError` lists them and every invalid or missing value.
    Contradictions between values are found later, by `problems_of`.
    """
    found = list(problems)
    winners, repeated = _winners(given)
    found.extend(repeated)
    values: dict[tuple[str, ...], Any] = {}
    for spec in specs_of(cls):
        winner = winners.get(spec.path)
        if winner is None:
            if spec.declaration.required:
                found.append(f"Missing required option: '{spec.flag}={spec.metavar}'")
            continue
        try:
            values[spec.path] = winner.value()
        except ValueError as error:
            found.append(str(error))
    if found:
        raise ConfigError(found)
    config = _build(cls, values, ())
    return LoadedConfig(config, {winner.spec.name: winner for winner in winners.values()})


def _winners(given: Iterable[OptionTexts]) -> tuple[dict[tuple[str, ...], OptionTexts], list[str]]:
    winners: dict[tuple[str, ...], OptionTexts] = {}
    problems = []
    for new in given:
        old = winners.get(new.spec.path)
        if old is None or new.source.value < old.source.value:
            winners[new.spec.path] = new
        elif new.source is old.source:
            if not new.spec.kind.is_list:
                problems.append(f"{new.label[0].upper()}{new.label[1:]} should be specified only once")
            else:
                winners[new.spec.path] = replace(old, texts=old.texts + new.texts)
    return winners, problems


def _build(cls: type[T], values: Mapping[tuple[str, ...], Any], path: tuple[str, ...]) -> T:
    arguments: dict[str, Any] = {name: _build(part, values, (*path, name)) for name, part in cls.parts.items()}
    for name in cls.declared:
        if (*path, name) in values:
            arguments[name] = values[*path, name]
    return cls(**arguments)


def part_of(config: Options, cls: type[T]) -> T:
    """Return the part of this class from a configuration tree."""
    for part in _parts(config):
        if isinstance(part, cls):
            return part
    raise LookupError(f"{type(config).__name__} has no part {cls.__name__}")


def problems_of(config: Options) -> list[str]:
    """Return the problems that the parts of a configuration report."""
    return [problem for part in _parts(config) if hasattr(part, "problems") for problem in part.problems()]


def warnings_of(loaded: LoadedConfig[Any]) -> list[str]:
    """Return the warnings about options whose main switch is off, then the warnings of the configuration parts."""
    specs = specs_of(type(loaded.config))
    by_flag = {flag: spec for spec in specs for flag in spec.declaration.flags}
    idle: dict[str, list[str]] = {}
    for spec in specs:
        if spec.declaration.needs is None:
            continue
        given = loaded.given.get(spec.name)
        if given is None or given.source is OptionSource.PROFILE or given.is_default_of_image:
            continue
        main, wanted = spec.declaration.needs
        if _value(loaded.config, by_flag[main]) not in (wanted if isinstance(wanted, tuple) else (wanted,)):
            idle.setdefault(main, []).append(spec.flag)
    found = [
        f"{_listed(flags)} will have no effect unless {main} is defined on the command line."
        for main, flags in idle.items()
    ]
    for part in _parts(loaded.config):
        if hasattr(part, "warnings"):
            found.extend(part.warnings())
    return found


def _value(config: object, spec: OptionSpec) -> object:
    value = config
    for name in spec.path:
        value = getattr(value, name)
    return value


def _listed(flags: Sequence[str]) -> str:
    return flags[0] if len(flags) == 1 else f"{', '.join(flags[:-1])} and {flags[-1]}"


def _parts(config: Options) -> Iterator[Any]:
    yield config
    for name in type(config).parts:
        yield from _parts(getattr(config, name))
