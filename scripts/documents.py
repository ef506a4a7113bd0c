"""Writes the generated pages of docs/ and the table of methods in the README, or lists outdated pages.

python scripts/documents.py           write the pages
python scripts/documents.py --check   list the pages that differ, and exit with 1
"""

from __future__ import annotations

import sys
from pathlib import Path

from ophion.cli.anvil.help import anvil_page
from ophion.cli.arguments import Basics
from ophion.cli.command import Command, CommandFamily
from ophion.cli.command_table import FAMILIES, commands_of
from ophion.cli.help import usage
from ophion.node.config import NodeConfig
from ophion.rpc.methods import all_methods
from ophion.rpc.schema.openrpc import pages, table
from ophion.runtime.options import specs_of
from ophion.runtime.options.render import markdown, meaning, show_default, value_form

ROOT = Path(__file__).resolve().parent.parent
TABLE = "<!-- methods: written by make docs -->"
GENERATED = "Generated from the source; `make docs` writes this page."


def options_page() -> str:
    """Return the page of all node options."""
    introduction = f"""# Options

{GENERATED}

An option is set by a flag (`--data-path=data`), by a variable (`OPHION_DATA_PATH=data`; the prefixes `PANTHEON_` and
`BESU_` work too) or in the TOML file of `--config-file` (`data-path = "data"`). A flag wins over a variable, a variable
over the file, the file over the default. Booleans take `=true` and `=false` or stand alone; lists are separated by
commas or given again; names are read in any case. What is wrong with them is reported together, before anything starts.
"""
    # skip --help and --version, which are only useful on the command line
    every = (*(spec for spec in specs_of(Basics) if spec.metavar), *specs_of(NodeConfig))
    shown = [spec for spec in every if not spec.declaration.hidden]
    return f"{introduction}\n{markdown(shown)}"


def commands_page() -> str:
    """Return the page of all commands with their options and examples."""
    lines = [
        "# Commands",
        "",
        GENERATED,
        "",
        "Global options ([options](options.md)) may stand before or after a command.",
    ]
    for family in FAMILIES.values():
        if family.hidden:
            continue
        for command in commands_of(family).values():
            lines += _command_lines(family, command)
    return "\n".join(lines) + "\n"


def _command_lines(family: CommandFamily, command: Command) -> list[str]:
    title = family.name if command.name == family.name else f"{family.name} {command.name}"
    lines = ["", f"## ophion {title}", "", command.summary, "", "```", usage(family, command).removeprefix("Usage: ")]
    lines += ["```"]
    own = [spec for spec in specs_of(command.options) if not spec.declaration.hidden]
    if own:
        lines += ["", "| Option | Default | Meaning |", "| --- | --- | --- |"]
    for spec in own:
        default = "required" if spec.declaration.required else f"`{show_default(spec)}`" if show_default(spec) else ""
        cells = [f"`{spec.flag}{value_form(spec)}`", default, meaning(spec)]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    examples = ["", "```sh", *command.examples, "```"] if command.examples else []
    return lines + examples


def anvil_options_page() -> str:
    """Return the page of all options of Anvil."""
    return anvil_page(f"""# Options of Anvil

{GENERATED}

`ophion dev` and a link to `ophion` with the name anvil ([development node](development-node.md)) know every option of
Anvil 1.7.1. An option without effect causes one warning, and a refused option ends the start.
""")


def readme() -> str:
    """Return the README with its table of methods."""
    before, _, rest = (ROOT / "README.md").read_text().partition(TABLE)
    _, _, after = rest.partition(TABLE)
    return f"{before}{TABLE}\n{table(all_methods(), 'docs/rpc')}{TABLE}{after}"


def documents() -> dict[Path, str]:
    """Return every generated page by its path."""
    methods = {Path("docs/rpc") / name: text for name, text in pages(all_methods()).items()}
    docs = {
        Path("docs/options.md"): options_page(),
        Path("docs/commands.md"): commands_page(),
        Path("docs/anvil-options.md"): anvil_options_page(),
    }
    return {Path("README.md"): readme(), **docs, **methods}


def stale() -> list[Path]:
    """Return the pages that differ from the generated text, and pages of methods that no longer exist."""
    expected = documents()
    differing = [
        path for path, text in expected.items() if not (ROOT / path).exists() or (ROOT / path).read_text() != text
    ]
    every = (path.relative_to(ROOT) for path in (ROOT / "docs/rpc").glob("*.md"))
    left_over = [path for path in every if path not in expected]
    return sorted(differing + left_over)


def main() -> int:
    """Write the generated pages, or list the outdated pages."""
    if "--check" in sys.argv[1:]:
        for path in stale():
            print(f"{path} is out of date: run make docs")
        return 1 if stale() else 0
    expected = documents()
    for path in stale():
        (ROOT / path).unlink(missing_ok=True)
    for path, text in expected.items():
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
