"""Besu's home directory, which is its default data path."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from ophion.runtime.options import OptionSource, OptionSpec, OptionTexts

_PROGRAM_FOLDER: Final = "bin"
_HOME_PREFIX: Final = "besu"
_OPTION: Final = "besu-home"


def home_of(program: str) -> Path | None:
    """Return the home directory of a program HOME/bin/besu, or None if this is no installation of Besu.

    Besu's archives and image name the home directory `besu…`. So a link such as /usr/local/bin/besu does not make
    /usr/local a data path.
    """
    folder = Path(os.path.abspath(program)).parent
    home = folder.parent
    return home if folder.name == _PROGRAM_FOLDER and home.name.startswith(_HOME_PREFIX) else None


def home_settings(given: Iterable[OptionTexts], specs: Iterable[OptionSpec]) -> Iterator[OptionTexts]:
    """Yield the data path that `--besu-home` implies. Flags, environment and file override it."""
    found = [item for item in given if item.spec.name == _OPTION]
    if found:
        home = min(found, key=lambda item: item.source.value)
        spec = next(spec for spec in specs if spec.name == "data-path")
        yield OptionTexts(spec, home.texts, OptionSource.PROFILE, home.label)
