"""`ophion dev`: a development node with every service enabled."""

from __future__ import annotations

import os
import sys

from ophion.cli.command import Command, CommandSession
from ophion.errors import ConfigError
from ophion.node.config import NodeConfig
from ophion.node.dev_preset import command_line, with_dev_preset
from ophion.node.launch import launch
from ophion.runtime.options import Options, load, misspelt_variables, option, specs_of, warnings_of


class DevOptions(Options):
    """Options."""

    print_command: bool = option("--print-command", default=False, help="Show the equivalent command line and exit.")


def start(options: DevOptions, session: CommandSession) -> int:
    """Add the preset, then run the node."""
    loaded = with_dev_preset(session.settings)
    if not session.settings.is_given("--dev-unlocked-accounts"):
        _refuse_exposed_signers(loaded.config)
    if options.print_command:
        print(command_line(loaded.given.values()))
        return 0
    found = warnings_of(loaded)
    # warnings about the preset itself are expected
    expected = warnings_of(with_dev_preset(load(NodeConfig, ()))) if found else []
    unexpected = (warning for warning in found if warning not in expected)
    for warning in (*misspelt_variables(os.environ, specs_of(NodeConfig)), *session.warnings, *unexpected):
        print(f"Warning: {warning}", file=sys.stderr)
    return launch(loaded)


def _refuse_exposed_signers(config: NodeConfig) -> None:
    """Raise `ConfigError` where other machines could sign for the accounts that the preset unlocks."""
    if exposed := config.exposed_signers():
        raise ConfigError(
            f"{' and '.join(exposed)}: other machines could sign for the unlocked accounts of the dev network."
            " Add --dev-unlocked-accounts to allow that, or --dev-unlocked-accounts=false to keep the accounts locked."
        )


COMMANDS = (
    Command(
        "dev",
        "Start a development node: dev network, mining, JSON-RPC over HTTP and WebSocket, temporary data.",
        start,
        DevOptions,
        examples=(
            "ophion dev",
            "ophion dev --data-path=data --block-period=5",
            "ophion dev --print-command",
        ),
    ),
)
