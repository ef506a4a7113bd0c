"""`ophion Xhelp`: options that are taken for the sake of old command lines and stand in no other help."""

from __future__ import annotations

from ophion.cli.command import Command, Nothing, Session
from ophion.node.unstable_options import UnstableConfig
from ophion.runtime.options import specs_of
from ophion.runtime.options.render import help_sections


def show(options: Nothing, session: Session) -> int:
    """List them."""
    print(help_sections(specs_of(UnstableConfig), with_hidden=True))
    return 0


COMMANDS = (Command("Xhelp", "Show the unstable options.", show, examples=("ophion Xhelp",)),)
