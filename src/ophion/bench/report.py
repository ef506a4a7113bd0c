"""Formats the results of a benchmark: text for the terminal, JSON for programs, and one HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any, Final

from msgspec import Struct

from ophion.bench.load_step import LoadStep
from ophion.bench.search import SearchResult
from ophion.bench.verdict import is_sustained, percentile, period_of

_WIDTH, _HEIGHT, _EDGE = 720, 260, 44
_HEADINGS: Final = "".join(
    f"<th>{name}</th>" for name in ("tx/s", "sent as", "mined", "refused", "p50 s", "p99 s", "drained s", "kept up")
)
_STYLE: Final = """
:root { color-scheme: light dark; --ink: #1c2430; --paper: #ffffff; --faint: #5c6673; --good: #1f7a4d; --bad: #b3401f; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6eaf0; --paper: #14181f; --faint: #8d97a6; --good: #57c08a; --bad: #f08a63; }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); }
body { margin: 2rem auto; max-width: 46rem; padding: 0 1rem; }
.large { font-size: 2.6rem; font-weight: 650; line-height: 1.1; margin: 1rem 0 0; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .25rem .5rem; }
tr { border-bottom: 1px solid color-mix(in srgb, var(--faint) 30%, transparent); }
th:nth-child(2), td:nth-child(2) { text-align: left; }
svg { width: 100%; height: auto; } svg text { fill: var(--faint); font-size: 12px; }
.good { fill: var(--good); color: var(--good); } .bad { fill: var(--bad); color: var(--bad); }
.note { color: var(--faint); }
"""


class MeasuredRun(Struct, frozen=True):
    """Description of the measured network and run."""

    url: str
    client: str
    chain_id: int
    at: str
    """Start time of the run in UTC."""


def summary(found: SearchResult, subject: MeasuredRun) -> str:
    """Return a short summary of the results for the terminal."""
    lines = [f"{subject.client}, chain {subject.chain_id}, at {subject.url}", ""]
    if found.best is None:
        lines.append("The network sustained none of the tried rates.")
    else:
        best = _row(found.best)
        lines += [
            f"  {best['rate']:>10,.0f}  transactions per second, sustained ({found.best.shape})",
            f"  {_seconds(best['mined_p50_s']):>10}  until mined, median",
            f"  {_seconds(best['mined_p99_s']):>10}  until mined, 99th percentile",
            f"  {_seconds(best['answer_p99_s']):>10}  until answered, 99th percentile",
            f"  {_seconds(best['block_period_s']):>10}  between blocks",
        ]
        if not found.is_confirmed:
            lines += ["", _unconfirmed(found.best)]
    return "\n".join([*lines, "", f"What limits it: {found.limit}"])


def as_json(found: SearchResult, subject: MeasuredRun) -> dict[str, Any]:
    """Return all results of the benchmark as an object for JSON."""
    return {
        "url": subject.url,
        "client": subject.client,
        "chainId": subject.chain_id,
        "at": subject.at,
        "best": None if found.best is None else _row(found.best),
        "confirmed": found.best is not None and found.is_confirmed,
        "limit": found.limit,
        "steps": [_row(step) for step in found.steps],
    }


def as_html(found: SearchResult, subject: MeasuredRun) -> str:
    """Return one HTML page without scripts or external resources."""
    best = None if found.best is None else _row(found.best)
    head = "nothing" if best is None else f"{best['rate']:,.0f} transactions/s"
    times = (
        ""
        if best is None
        else f"<p>Until mined: {_seconds(best['mined_p50_s'])} (median), {_seconds(best['mined_p99_s'])} (p99);"
        f" a block every {_seconds(best['block_period_s'])}; {escape(str(found.best and found.best.shape))}.</p>"
    )
    note = "" if found.best is None or found.is_confirmed else f"<p>{escape(_unconfirmed(found.best))}</p>"
    rows = "\n".join(_table_row(step) for step in found.steps)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>ophion bench: {escape(head)}</title><style>{_STYLE}</style></head><body>
<p class="large">{escape(head)}</p>
{times}
{note}
<p><b>What limits it.</b> {escape(found.limit)}</p>
<p class="note">{escape(subject.client)}, chain {subject.chain_id}, {escape(subject.url)}, {escape(subject.at)}</p>
<h2>Until mined, by rate</h2>
{_chart(found.steps)}
<h2>Steps</h2>
<table><thead><tr>{_HEADINGS}</tr></thead>
<tbody>
{rows}
</tbody></table>
<p class="note">A step sends on schedule for some seconds; the time of a transaction runs from when it was due until its
block was seen.</p>
</body></html>
"""


def _unconfirmed(best: LoadStep) -> str:
    seconds = f"{best.seconds:g} s"
    return f"Not confirmed: the network sustained it for {seconds}, but not longer after the overload."


def _row(step: LoadStep) -> dict[str, Any]:
    return {
        "rate": round(step.rate, 1),
        "seconds": step.seconds,
        "batch": step.shape.batch,
        "connections": step.shape.connections,
        "sent": step.sent,
        "mined": step.mined,
        "refused": dict(step.refused),
        "is_sustained": is_sustained(step),
        "mined_p50_s": _rounded(percentile(step.mined_s, 0.5)),
        "mined_p99_s": _rounded(percentile(step.mined_s, 0.99)),
        "answer_p50_s": _rounded(percentile(step.answer_s, 0.5)),
        "answer_p99_s": _rounded(percentile(step.answer_s, 0.99)),
        "late_s": _rounded(step.late_s),
        "drained_s": _rounded(step.drained_s),
        "blocks": len(step.blocks),
        "block_period_s": _rounded(period_of(step)),
        "largest_block": max((block.transactions for block in step.blocks), default=0),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _seconds(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.2f} s"


def _plain(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _table_row(step: LoadStep) -> str:
    row = _row(step)
    kind = "good" if row["is_sustained"] else "bad"
    cells = [
        f"{row['rate']:,.0f}",
        escape(str(step.shape)),
        f"{row['mined']:,}",
        f"{sum(step.refused.values()):,}",
        _plain(row["mined_p50_s"]),
        _plain(row["mined_p99_s"]),
        _plain(row["drained_s"]),
        "yes" if row["is_sustained"] else "no",
    ]
    return f'<tr class="{kind}">' + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _chart(steps: Sequence[LoadStep]) -> str:
    """Return an SVG chart of the time until a transaction is mined, over the rate: medians as dots, 99th percentiles as
    rings. Both axes start at zero.
    """
    points = [(step, percentile(step.mined_s, 0.5), percentile(step.mined_s, 0.99)) for step in steps]
    shown = [(step, p50, p99) for step, p50, p99 in points if p50 is not None and p99 is not None]
    if not shown:
        return "<p>Nothing was mined.</p>"
    most_rate, most_s = max(step.rate for step, _, _ in shown), max(p99 for _, _, p99 in shown) or 1.0

    def place(rate: float, seconds: float) -> tuple[float, float]:
        across = _EDGE + rate / most_rate * (_WIDTH - 2 * _EDGE)
        return round(across, 1), round(_HEIGHT - _EDGE - seconds / most_s * (_HEIGHT - 2 * _EDGE), 1)

    marks = []
    for step, p50, p99 in shown:
        kind = "good" if is_sustained(step) else "bad"
        (x, low), (_, high) = place(step.rate, p50), place(step.rate, p99)
        marks.append(f'<circle class="{kind}" cx="{x}" cy="{low}" r="4"/>')
        marks.append(f'<circle class="{kind}" cx="{x}" cy="{high}" r="4" fill-opacity="0" stroke="currentColor"/>')
    left, floor = _EDGE, _HEIGHT - _EDGE
    axis = (
        f'<path d="M{left} {_EDGE / 2} V{floor} H{_WIDTH - _EDGE / 2}" fill="none" stroke="currentColor" opacity=".3"/>'
    )
    labels = (
        f'<text x="{left}" y="{_EDGE / 2 - 6}">{most_s:.2f} s</text>'
        f'<text x="{_WIDTH - _EDGE}" y="{floor + 18}" text-anchor="end">{most_rate:,.0f} tx/s</text>'
        f'<text x="{left}" y="{floor + 18}">0</text>'
    )
    label = "Time until mined over transactions per second: dots are medians, rings are 99th percentiles"
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{label}">{axis}{"".join(marks)}{labels}</svg>'
