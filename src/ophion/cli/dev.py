"""`ophion dev`: a development node with every service enabled."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ophion.cli.anvil.node_settings import contradictions, node_tokens
from ophion.cli.anvil.options import HOSTS_VARIABLE, AnvilOptions, idle_warnings
from ophion.cli.command import Command, CommandSession
from ophion.errors import ConfigError
from ophion.node.config import PERM_WITHOUT_PERMISSIONS, NodeConfig
from ophion.node.dev_options import DevPreset
from ophion.node.dev_preset import command_line, with_dev_preset, with_tokens
from ophion.node.launch import launch
from ophion.runtime.options import misspelt_variables, option, specs_of, warnings_of

if TYPE_CHECKING:
    from ophion.node.build import NodeCore
    from ophion.runtime.thread_pools import Lanes
    from ophion.sdk.execution_log.execution_log import ExecutionLog


class DevOptions(AnvilOptions):
    """Options: all options of Anvil, and some options of this node."""

    print_command: bool = option("--print-command", default=False, help="Show the equivalent command line and exit.")
    preset: DevPreset | None = option(
        "--preset", default=None, help="Chain id, accounts, prices and name as Anvil or Hardhat's node have them."
    )
    artifacts: Path | None = option(
        "--artifacts", default=None, metavar="DIR", help="Compiled contracts, for names, errors and source lines."
    )

    def tokens(self) -> list[str]:
        """Return the node options that are equivalent to these options."""
        # a forked chain usually follows current rules, so use the defaults of anvil, which are current too
        preset = DevPreset.ANVIL if self.preset is None and self.fork_urls else self.preset
        own = [] if preset is None else [f"--dev-preset={preset.value}"]
        artifacts = [] if self.artifacts is None else [f"--dev-artifacts={self.artifacts}"]
        return [*own, *node_tokens(self), *artifacts]


def start(options: DevOptions, session: CommandSession) -> int:
    """Add the options of the development preset, then run the node or print the command line."""
    if problems := list(contradictions(options)):
        raise ConfigError(problems)
    if options.hosts is None and options.preset is DevPreset.ANVIL and (hosts := os.environ.get(HOSTS_VARIABLE)):
        options = replace(options, hosts=tuple(host.strip() for host in hosts.split(",")))
    settings = with_tokens(session.settings, options.tokens())
    loaded = with_dev_preset(settings)
    if not session.settings.is_given("--dev-unlocked-accounts"):
        _refuse_exposed_signers(loaded.config)
    if options.print_command:
        print(command_line(loaded.given.values()))
        return 0
    # omit the warning that API group PERM is enabled without permissioning: the preset enabled it, not the user
    unexpected = (warning for warning in warnings_of(loaded) if warning != PERM_WITHOUT_PERMISSIONS)
    misspelt = misspelt_variables(os.environ, specs_of(NodeConfig))
    for warning in (*misspelt, *session.warnings, *unexpected):
        print(f"Warning: {warning}", file=sys.stderr)
    # with the preset anvil, use stdout: the launcher prool takes text on stderr for a failed start
    stream = sys.stdout if options.preset is DevPreset.ANVIL else sys.stderr
    for warning in idle_warnings(options):
        print(f"Warning: {warning}", file=stream, flush=True)
    return launch(loaded, _attach_execution_log)


def _attach_execution_log(config: NodeConfig, core: NodeCore, lanes: Lanes) -> ExecutionLog | None:
    # lazy import: the module loads while the database opens, so it does not delay the start
    from ophion.sdk.execution_log.attach import attach_execution_log

    return attach_execution_log(config, core, lanes)


def _refuse_exposed_signers(config: NodeConfig) -> None:
    """Raise `ConfigError` if other machines could sign for the accounts that the preset unlocks."""
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
            "ophion dev --preset=anvil",
            "ophion dev --data-path=data --block-period=5",
            "ophion dev --print-command",
        ),
    ),
)
