"""Every option of Besu 1.0 to 26.x, with its effect in Ophion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from functools import cache
from typing import Final

from msgspec import Struct

from ophion.node.besu.honoured import OTHER_NAME, SAME_NAME
from ophion.node.besu.ignored import IGNORED
from ophion.node.besu.refused import BEFORE_1_0, REFUSED

_PLUGIN_PREFIXES: Final = ("plugin-", "Xplugin-")
_NO_PLUGINS: Final = "Ophion loads no plugins"
_UNRELEASED: Final = "-"


class OptionEffect(Enum):
    """The effect of a Besu option in Ophion."""

    HONOURED = "honoured"
    IGNORED = "no effect"
    REFUSED = "refused"


class BesuOption(Struct, frozen=True):
    """One row of the table: the name of an option, the versions that had it and the verdict."""

    name: str
    first: str
    """First version with this option; empty when no release had the name."""
    last: str
    verdict: OptionEffect
    target: str = ""
    """Option of Ophion with the same effect, for a Besu option that Ophion honours."""
    reason: str = ""
    accepted: frozenset[str] = frozenset()
    """Values of a refused option that are accepted, because they describe what Ophion always does."""

    @property
    def is_switch(self) -> bool:
        """Return whether the option may be given without a value."""
        return self.name.endswith("enabled") or "-disable" in self.name or self.name.startswith("Xlauncher")

    @property
    def explanation(self) -> str:
        """Return the effect of the option as a phrase for reports."""
        if self.verdict is OptionEffect.HONOURED and self.target != self.name:
            return f"as --{self.target}"
        return self.reason


@cache
def besu_options() -> Mapping[str, BesuOption]:
    """Return the table, keyed by name."""
    return {row.name: row for row in _rows()}


def find_besu_option(name: str) -> BesuOption | None:
    """Return the row of a name. Options of Besu plugins are always refused."""
    row = besu_options().get(name)
    if row is None and name.startswith(_PLUGIN_PREFIXES):
        return BesuOption(name, "", "", OptionEffect.REFUSED, reason=_NO_PLUGINS)
    return row


def _rows() -> Iterator[BesuOption]:
    for name, first, last in _cells(SAME_NAME):
        yield BesuOption(name, first, last, OptionEffect.HONOURED, name)
    for name, first, last, target in _cells(OTHER_NAME):
        yield BesuOption(name, first, last, OptionEffect.HONOURED, target)
    for reason, rows in IGNORED:
        for name, first, last in _cells(rows):
            yield BesuOption(name, first, last, OptionEffect.IGNORED, reason=reason)
    for reason, accepted, rows in REFUSED:
        for name, first, last in _cells(rows):
            yield BesuOption(
                name, first, last, OptionEffect.REFUSED, reason=reason, accepted=frozenset(accepted.split())
            )
    for name, first, last, target in _cells(BEFORE_1_0):
        yield BesuOption(
            name, first, last, OptionEffect.REFUSED, reason=f"it is a name of Pantheon 0.x; use --{target}"
        )


def _cells(rows: str) -> Iterator[list[str]]:
    for row in rows.replace("|", "\n").split("\n"):
        if row.strip():
            yield ["" if cell == _UNRELEASED else cell for cell in row.split()]
