"""Translates settings under Besu's names into options of Ophion."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from ophion.node.besu.log4j import VARIABLE as LOG4J_VARIABLE
from ophion.node.besu.option_table import BesuOption, OptionEffect, besu_options, find_besu_option
from ophion.node.besu.profiles import profile_options
from ophion.runtime.options import OptionSource, OptionSpec, OptionTexts, split_text

BESU_PREFIXES: Final = ("BESU_", "PANTHEON_")
OTHER_PREFIXES: Final = ("LOG4J_", "JAVA_")
"""Prefixes of variables for Besu's Java runtime, which Ophion does not read."""


class BesuSetting(Struct, frozen=True):
    """A setting under a Besu name."""

    option: BesuOption
    texts: tuple[str, ...]
    source: OptionSource
    label: str


class Translation(Struct, frozen=True):
    """Result of a translation: options of Ophion, with warnings and problems to report."""

    given: list[OptionTexts]
    warnings: list[str]
    problems: list[str]


def read_besu_setting(name: str, texts: tuple[str, ...], source: OptionSource, label: str) -> BesuSetting | None:
    """Return the setting with this Besu name, or None if Besu does not have the option."""
    option = find_besu_option(name)
    return None if option is None else BesuSetting(option, texts, source, label)


def read_besu_environment(environ: Mapping[str, str], specs: Iterable[OptionSpec]) -> list[BesuSetting]:
    """Read Besu variables such as BESU_PROFILE for which Ophion has no option of the same name."""
    names = {_variable(name): name for name in besu_options()}
    own = {_variable(name) for spec in specs for name in spec.names}
    found: list[BesuSetting] = []
    for variable, text in besu_variables(environ):
        suffix = variable.partition("_")[2]
        name = names.get(suffix)
        if name is None or suffix in own or not text or besu_options()[name].target in ("help", "config-file"):
            continue
        label = f"environment variable '{variable}'"
        found.append(BesuSetting(besu_options()[name], (text,), OptionSource.ENVIRONMENT, label))
    return found


def besu_variables(environ: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the variables whose names begin with a prefix of Besu, sorted by name."""
    return sorted((name, text) for name, text in environ.items() if name.startswith(BESU_PREFIXES))


def unread_variables(environ: Mapping[str, str], specs: Iterable[OptionSpec]) -> Iterator[str]:
    """Yield variables for Besu or its Java runtime that Ophion does not read."""
    known = {_variable(name) for name in besu_options()} | {_variable(name) for spec in specs for name in spec.names}
    for name in sorted(environ):
        is_unknown = name.startswith(BESU_PREFIXES) and name.partition("_")[2] not in known
        if is_unknown or (name.startswith(OTHER_PREFIXES) and name != LOG4J_VARIABLE):
            yield name


def translate(settings: Iterable[BesuSetting], specs: Iterable[OptionSpec]) -> Translation:
    """Translate each setting by its row in the table of Besu options."""
    by_name = {name: spec for spec in specs for name in spec.names}
    result = Translation([], [], [])
    for setting in settings:
        option = setting.option
        if option.name == "profile":
            _apply_profile(setting, by_name, result)
        elif option.verdict is OptionEffect.HONOURED:
            spec = by_name[option.target]
            texts = setting.texts if len(setting.texts) != 1 else split_text(spec, setting.texts[0])
            result.given.append(OptionTexts(spec, texts or ("true",), setting.source, setting.label))
        elif option.verdict is OptionEffect.IGNORED:
            result.warnings.append(f"{_capital(setting.label)} has no effect: {option.reason}.")
        elif not option.accepted or not {text.lower() for text in setting.texts} <= option.accepted:
            result.problems.append(f"{_capital(setting.label)} is not supported: {option.reason}.")
    return result


def _apply_profile(setting: BesuSetting, by_name: Mapping[str, OptionSpec], result: Translation) -> None:
    name = setting.texts[0] if setting.texts else ""
    try:
        options = profile_options(name)
    except ValueError as error:
        result.problems.append(f"Invalid value for {setting.label}: {error}")
        return
    label = f"option of profile {name.upper()}"
    result.given.extend(
        OptionTexts(by_name[key], (text,), OptionSource.PROFILE, label) for key, text in options.items()
    )


def _variable(name: str) -> str:
    return name.upper().replace("-", "_")


def _capital(label: str) -> str:
    return label[0].upper() + label[1:]
