"""`ophion Xhelp`: lists Besu's unstable options and their effect in Ophion."""

from __future__ import annotations

from ophion.cli.command import Command, CommandSession, NoOptions
from ophion.node.besu.option_table import besu_options


def show(options: NoOptions, session: CommandSession) -> int:
    """Print one line for each unstable option of Besu (--X...), with its effect in Ophion."""
    for option in besu_options().values():
        if option.name.startswith("X"):
            print(
                f"  --{option.name}: {option.verdict.value}" + (f", {option.explanation}" if option.explanation else "")
            )
    return 0


COMMANDS = (Command("Xhelp", "Show the unstable options of Besu.", show, examples=("ophion Xhelp",)),)
