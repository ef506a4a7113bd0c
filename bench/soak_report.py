"""Slopes and plots of the samples that soak.py has stored: python bench/soak_report.py SAMPLES [--plot FILE.svg]"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

FIGURES: Final = ("anonymous_mb", "resident_mb", "files", "threads", "late_ms", "processor_us")
HOURS_A_YEAR: Final = 8760
COLOURS: Final = ("#2563eb", "#dc2626", "#16a34a", "#9333ea", "#ea580c", "#0891b2", "#4b5563")


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Return the slope of a line through these points by least squares."""
    mean_x, mean_y = sum(x for x, _ in points) / len(points), sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0


def summary(samples: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the slopes of the second half.

    Slopes of memory, files and lateness are per hour and only for processes that ran all the time. Bytes on disk are
    per transaction.
    """
    late = [one for one in samples if one["s"] >= samples[-1]["s"] / 2]
    found: dict[str, Any] = {
        "seconds": samples[-1]["s"],
        "transactions": samples[-1]["mined"],
        "per_s": round((late[-1]["mined"] - late[0]["mined"]) / max(1e-9, late[-1]["s"] - late[0]["s"])),
        "kills": samples[-1]["kills"],
        "backups": samples[-1]["backups"],
        "traces": samples[-1]["traces"],
    }
    for name in samples[-1]["nodes"]:
        nodes = [one["nodes"][name] for one in samples]
        half = [one["nodes"][name] for one in late]
        rows: dict[str, Any] = {}
        found[name] = rows
        disk = [(one["mined"], one["nodes"][name]["disk_bytes"]) for one in late]
        rows["disk_bytes_per_transaction"] = round(slope(disk), 1)
        rows["anonymous_mb_most"] = max(one["anonymous_mb"] for one in nodes)
        if len({one["pid"] for one in nodes}) > 1:
            continue
        for figure in FIGURES:
            points = [(one["s"] / 3600, one["nodes"][name][figure]) for one in late]
            known = [(x, y) for x, y in points if y is not None]
            if not known:
                continue
            middle = sorted(y for _, y in known)[len(known) // 2]
            grown = slope(known)
            rows[figure] = {"median": round(middle, 1), "slope_per_h": round(grown, 3)}
            if figure.endswith("_mb"):
                rows[figure]["a_year_gb"] = round(grown * HOURS_A_YEAR / 1024, 2)
        rows["late_ms_most"] = max(one["late_most_ms"] or 0 for one in half)
    return found


def plot(samples: Sequence[Mapping[str, Any]]) -> str:
    """Return an SVG with one panel for each figure and one line for each node."""
    width, height, left = 640, 150, 60
    panels = []
    figures = ("anonymous_mb", "resident_mb", "files", "late_ms", "disk_bytes")
    end = max(1.0, samples[-1]["s"])
    for index, figure in enumerate(figures):
        top = index * height + 20
        values = [node[figure] for one in samples for node in one["nodes"].values() if node[figure] is not None]
        most = max(values, default=0) * 1.1 or 1.0
        panels.append(
            f'<text x="{left}" y="{top + 8}" font-weight="bold">{figure}, at most {max(values, default=0):g}</text>'
            f'<path d="M{left} {top + 14}V{top + height - 30}H{width - 10}" fill="none" stroke="#888"/>'
        )
        for place, name in enumerate(samples[-1]["nodes"]):
            points = " ".join(
                f"{left + one['s'] / end * (width - left - 10):.1f},"
                f"{top + height - 30 - one['nodes'][name][figure] / most * (height - 44):.1f}"
                for one in samples
                if one["nodes"][name][figure] is not None
            )
            panels.append(
                f'<polyline points="{points}" fill="none" stroke="{COLOURS[place % len(COLOURS)]}"/>'
                f'<text x="{width - 10}" y="{top + 8 + 12 * place}" text-anchor="end"'
                f' fill="{COLOURS[place % len(COLOURS)]}">{name}</text>'
            )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {len(figures) * height + 20}"'
        f' font-family="sans-serif" font-size="11">{"".join(panels)}</svg>\n'
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("samples", type=Path)
    parser.add_argument("--plot", type=Path)
    chosen = parser.parse_args()
    samples = [json.loads(line) for line in chosen.samples.read_text().splitlines()]
    print(json.dumps(summary(samples), indent=1))
    if chosen.plot:
        chosen.plot.write_text(plot(samples))


if __name__ == "__main__":
    main()
