"""Help text and documentation page of Anvil's options, made from their table."""

from __future__ import annotations

import textwrap

from ophion.cli.anvil.options import HOSTS_VARIABLE, AnvilEffect, AnvilOptions, effect_of
from ophion.runtime.options import OptionSpec, specs_of
from ophion.runtime.options.render import meaning, value_form

_HEADINGS = {
    AnvilEffect.TAKEN: "Options",
    AnvilEffect.NO_EFFECT: "Options without effect (one warning)",
    AnvilEffect.REFUSED: "Refused options",
}
_INDENT = 10
_WIDTH = 100
_COMMANDS = """Commands:
  completions  Print a completion script: bash, zsh or fish
  help         Print this text"""
_OTHERS = """Other options:
  -h, --help
          Print this text
  -V, --version
          Print the versions"""


def anvil_options() -> tuple[OptionSpec, ...]:
    """Return all options of Anvil. Options with an effect come first."""
    order = list(AnvilEffect)
    return tuple(sorted(specs_of(AnvilOptions), key=lambda spec: order.index(effect_of(spec))))


def anvil_help() -> str:
    """Return the help of a link named anvil."""
    blocks = [
        "A development node of Ophion with the defaults and the options of Anvil 1.7.1",
        "Usage: anvil [OPTIONS] [COMMAND]",
        _COMMANDS,
    ]
    for effect, heading in _HEADINGS.items():
        entries = [_entry(spec) for spec in anvil_options() if effect_of(spec) is effect]
        blocks.append(f"{heading}:\n" + "\n".join(entries))
    blocks += [_OTHERS, "All options of `ophion dev` and of the node are taken as well: see `ophion dev --help`."]
    return "\n\n".join(blocks)


def _entry(spec: OptionSpec) -> str:
    flags = sorted(spec.declaration.flags, key=lambda flag: flag.startswith("--"))
    head = f"  {', '.join(flags)}{value_form(spec) if not spec.kind.is_bool else ''}"
    text = f"{meaning(spec)} [env: {HOSTS_VARIABLE}]" if spec.name == "host" else meaning(spec)
    indent = " " * _INDENT
    return f"{head}\n{textwrap.fill(text, _WIDTH, initial_indent=indent, subsequent_indent=indent)}"


def anvil_page(introduction: str) -> str:
    """Return the documentation page: a table of all options."""
    lines = [introduction, "| Option of Anvil | Here | Meaning or reason |", "| --- | --- | --- |"]
    for spec in anvil_options():
        flags = ", ".join(f"`{flag}`" for flag in spec.declaration.flags)
        if spec.name == "host":
            flags += f", variable `{HOSTS_VARIABLE}`"
        cells = [flags, effect_of(spec).value, meaning(spec)]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"
