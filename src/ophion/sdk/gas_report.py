"""`GasReport`: gas by contract and function, and a file to compare with in continuous integration."""

from __future__ import annotations

from pathlib import Path

import orjson
from msgspec import Struct

from ophion.errors import OphionError


class GasReportError(OphionError):
    """Raised when a gas report cannot be read."""


class GasUse(Struct):
    """Gas figures of one contract function."""

    calls: int
    min: int
    max: int
    total: int

    @property
    def mean(self) -> int:
        return self.total // self.calls

    def merged(self, other: GasUse) -> GasUse:
        """Return the combined figures of two records of the same function."""
        return GasUse(
            self.calls + other.calls, min(self.min, other.min), max(self.max, other.max), self.total + other.total
        )


class GasReport:
    """Collects the gas of transactions.

    >>> report = GasReport()
    >>> report.add("Token", "transfer", 100)
    >>> report.add("Token", "transfer", 300)
    >>> print(report.text())
    function          calls     min    mean     max
    Token.transfer        2     100     200     300
    """

    def __init__(self) -> None:
        self.uses: dict[str, GasUse] = {}

    def add(self, contract: str, function: str, gas: int) -> None:
        """Record the gas of a transaction."""
        self.merge(f"{contract}.{function}", GasUse(1, gas, gas, gas))

    def merge(self, name: str, use: GasUse) -> None:
        """Add the gas of a function from another report."""
        known = self.uses.get(name)
        self.uses[name] = use if known is None else known.merged(use)

    def text(self) -> str:
        """Return the report as a text table, sorted by name."""
        width = max((len(name) for name in self.uses), default=8) + 4
        lines = [f"{'function':<{width}}{'calls':>5}{'min':>8}{'mean':>8}{'max':>8}"]
        for name, use in sorted(self.uses.items()):
            lines.append(f"{name:<{width}}{use.calls:>5}{use.min:>8}{use.mean:>8}{use.max:>8}")
        return "\n".join(lines)

    def as_json(self) -> dict[str, dict[str, int]]:
        """Return the report as plain values."""
        return {
            name: {"calls": use.calls, "min": use.min, "mean": use.mean, "max": use.max, "total": use.total}
            for name, use in sorted(self.uses.items())
        }

    def write(self, path: Path) -> None:
        """Write the report to a file, with which later runs are compared."""
        path.write_bytes(orjson.dumps(self.as_json(), option=orjson.OPT_INDENT_2) + b"\n")

    def differences(self, path: Path) -> list[str]:
        """Return a line for each function whose mean differs from the file. Returns an empty list if the file is
        missing.
        """
        if not path.exists():
            return []
        try:
            before = {name: int(use["mean"]) for name, use in orjson.loads(path.read_bytes()).items()}
        except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError, ValueError) as error:
            raise GasReportError(f"{path} is not a gas report: {error}. Delete it to write a new one.") from None
        lines = []
        for name in sorted({*before, *self.uses}):
            old, use = before.get(name), self.uses.get(name)
            if use is None:
                lines.append(f"{name}: {old} -> not called")
            elif old is None:
                lines.append(f"{name}: new, {use.mean}")
            elif old != use.mean:
                lines.append(f"{name}: {old} -> {use.mean} ({use.mean - old:+d})")
        return lines
