"""Records a run and shows it as a sequence diagram in text.

The diagram has one column per node and one row per message: the author's column shows the message, the other columns
its delay in milliseconds or `lost`.

       time  V0        V1        V2        V3
      1.000  Proposal  +12       +9        lost      1/0 5b1f03aa
      1.012  +8        Prepare   +15       +4        1/0 5b1f03aa
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from ophion.consensus.bft.messages import BftMessage, Proposal, RoundChange
from ophion.testing.simulation.simulated_node import FinalBlock

_COLUMN: Final = 12
_LOST: Final = "lost"


class Row(Struct, frozen=True):
    """One row of the diagram: a cell per node, or a note across all columns."""

    time: float
    cells: dict[int, str]
    text: str
    is_note: bool = False


class Trace:
    """Records the messages, blocks and notes of a simulation run."""

    def __init__(self, members: int) -> None:
        self.rows: list[Row] = []
        self._members = members

    def message(self, time: float, sender: int, message: BftMessage, fates: dict[int, float | None]) -> None:
        """Record a message. `fates` has the delay for each receiver; None means lost."""
        cells = {index: _LOST if delay is None else f"+{delay * 1000:.0f}" for index, delay in fates.items()}
        cells[sender] = "RoundChg" if isinstance(message, RoundChange) else type(message).__name__
        self.rows.append(Row(time, cells, f"{message.height}/{message.round} {_subject(message)}".rstrip()))

    def final(self, time: float, member: int, block: FinalBlock) -> None:
        """Record an imported block."""
        text = f"block {block.height} {block.hash[:4].hex()} decided in round {block.round}"
        self.rows.append(Row(time, {member: "imports"}, text))

    def add_note(self, time: float, text: str) -> None:
        """Record a note."""
        self.rows.append(Row(time, {}, text, is_note=True))

    def diagram(self, last: int | None = None) -> str:
        """Return the diagram as text. With `last`, only the newest `last` rows."""
        rows = self.rows if last is None else self.rows[-last:]
        names = "".join(f"V{index}".ljust(_COLUMN) for index in range(self._members))
        lines = [f"{'time':>10}  {names}height/round"]
        if len(rows) < len(self.rows):
            lines.append(f"{'...':>10}  ({len(self.rows) - len(rows)} rows before)")
        for row in rows:
            if row.is_note:
                lines.append(f"{row.time:10.3f}  -- {row.text}")
            else:
                cells = "".join(row.cells.get(index, "").ljust(_COLUMN) for index in range(self._members))
                lines.append(f"{row.time:10.3f}  {cells}{row.text}")
        return "\n".join(lines)


def _subject(message: BftMessage) -> str:
    if isinstance(message, RoundChange):
        claim = message.signed.claim
        return "nothing prepared" if claim is None else f"prepared {claim.digest[:4].hex()} in {claim.round}"
    if isinstance(message, Proposal):
        return message.block.hash[:4].hex()
    return message.digest[:4].hex()
