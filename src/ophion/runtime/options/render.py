"""Renders options as text: `--help` for a terminal, a Markdown page for the documentation."""

from __future__ import annotations

import enum
import re
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ophion.runtime.options.declare import OptionSpec
from ophion.runtime.options.sources import PREFIXES, variable

_INDENT = 6


def help_sections(specs: Iterable[OptionSpec], width: int = 100, with_hidden: bool = False) -> str:
    """Return the help text of the options under their headings."""
    blocks: list[str] = []
    for section, members in by_section(specs):
        shown = [spec for spec in members if with_hidden or not spec.declaration.hidden]
        if shown:
            blocks.append(f"{section}:\n" + "\n".join(_help_entry(spec, width) for spec in shown))
    return "\n\n".join(blocks)


def by_section(specs: Iterable[OptionSpec]) -> list[tuple[str, list[OptionSpec]]]:
    """Return the options grouped by heading, in order of first appearance."""
    grouped: dict[str, list[OptionSpec]] = {}
    for spec in specs:
        grouped.setdefault(spec.section, []).append(spec)
    return list(grouped.items())


def _help_entry(spec: OptionSpec, width: int) -> str:
    flags = ", ".join(sorted(spec.declaration.flags, key=lambda flag: flag.startswith("--")))
    head = f"  {flags}{value_form(spec)}"
    body = textwrap.wrap(_sentence(spec), width - _INDENT, break_on_hyphens=False, break_long_words=False)
    return "\n".join([head, *(" " * _INDENT + line for line in body)])


def value_form(spec: OptionSpec) -> str:
    """Return the form of the value after the flag: `=FILE`, `=A,B…`, or `[=true|false]` when the value is optional."""
    if not spec.metavar:
        return ""
    metavar = f"{spec.metavar}[,{spec.metavar}…]" if spec.kind.is_list else spec.metavar
    return f"[={metavar}]" if spec.takes_bare else f"={metavar}"


def _sentence(spec: OptionSpec) -> str:
    default = "required" if spec.declaration.required else show_default(spec)
    if default and not spec.declaration.required:
        default = f"default: {default}"
    return f"{meaning(spec)} ({default})" if default else meaning(spec)


def meaning(spec: OptionSpec) -> str:
    """Return the help text. The choices are appended unless the text or `value_form` names them."""
    help_text = spec.declaration.help
    shown = re.findall(r"\w+", f"{spec.metavar} {help_text}")
    if set(spec.kind.choices[:1]) <= set(shown):
        return help_text
    return f"{help_text} One of: {', '.join(spec.kind.choices)}."


def show_default(spec: OptionSpec) -> str:
    """Return the default value as text; empty if the option has no default."""
    return _show(spec.default) if spec.metavar else ""


def _show(value: Any) -> str:
    if value is None or value == ():
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return f"0x{value.hex()}" if value else ""
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, tuple):
        return ",".join(_show(item) for item in value)
    return str(value) if isinstance(value, int | float | str | Path) else repr(value)


def markdown(specs: Iterable[OptionSpec]) -> str:
    """Return Markdown with one table per section: flag, environment variable, default, meaning."""
    lines: list[str] = []
    for section, members in by_section(specs):
        lines += [f"## {section}", "", "| Option | Variable | Default | Meaning |", "| --- | --- | --- | --- |"]
        for spec in members:
            flags = "<br>".join(f"`{flag}`" for flag in spec.declaration.flags)
            default = show_default(spec)
            cells = [
                flags,
                f"`{variable(PREFIXES[0], spec.name)}`",
                f"`{default}`" if default else "",
                meaning(spec),
            ]
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        lines.append("")
    return "\n".join(lines)
