"""`ophion operator rolling-upgrade`: plans the upgrade of a running network, and checks the network between the
steps.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from ophion.cli.command import Command, CommandSession
from ophion.cli.node_client import read_token
from ophion.cli.upgrade_checks import NetworkState, fork, look_at, problems, wait_for_block
from ophion.cli.upgrade_plan import NodeEntry, NodeRole, UpgradeDescription, ordered_nodes, plan_lines, read_description
from ophion.errors import CommandError
from ophion.runtime.options import Options, at_least, option

_POLL_S: Final = 1.0


class RollingUpgradeOptions(Options):
    """Options: plan file and checked step of `ophion operator rolling-upgrade`."""

    plan: Path = option(
        "--plan", metavar="FILE", help="Description of the network in TOML or JSON: name, rpc and role of each node."
    )
    check: int | None = option(
        "--check",
        default=None,
        check=at_least(0),
        metavar="STEP",
        help="Check the network after this step instead of printing the plan; 0 checks it before the first step.",
    )
    wait_s: float = option(
        "--wait",
        default=30.0,
        check=at_least(0),
        metavar="SECONDS",
        help="Seconds that a check waits for nodes that are starting or catching up.",
    )
    token_file: Path | None = option(
        "--token-file", default=None, help="File with a token, for nodes with authentication."
    )


def rolling_upgrade(options: RollingUpgradeOptions, session: CommandSession) -> int:
    """Print the plan, or check one step. Returns 1 if the upgrade must not continue."""
    description = read_description(options.plan)
    nodes = ordered_nodes(description)
    if options.check is not None and options.check > len(nodes):
        raise CommandError(f"--check={options.check}: the plan has {len(nodes)} steps")
    token = read_token(options.token_file)
    network = look_at(nodes, token)
    if options.check is not None:
        deadline = time.monotonic() + options.wait_s
        while time.monotonic() < deadline and any(problems(network, nodes, nodes[: options.check], None)):
            time.sleep(_POLL_S)
            network = look_at(nodes, token)
    for node in nodes:
        found = network.checked[node.name]
        state = found.problem or f"{found.client}, block {found.height}, {found.peers} peers"
        print(f"{node.name} ({node.role.value}): {state}")
    if options.check is None:
        turns = network.turns
        for line in plan_lines(options.plan, description, turns.validators, network.is_clique, turns.period_s):
            print(line)
        return 0
    return _check(options.check, description, nodes, network, token)


def _check(
    step: int, description: UpgradeDescription, nodes: list[NodeEntry], network: NetworkState, token: str | None
) -> int:
    reasons = list(problems(network, nodes, nodes[:step], description.version))
    forked = fork(nodes, network, token)
    if forked is not None:
        reasons.insert(0, forked)
    subject = nodes[max(step - 1, 0)]
    found, period_s = network.checked[subject.name], network.turns.period_s
    if found.problem is None and not wait_for_block(subject, found.height, period_s, token, time.sleep):
        reasons.append(f"{subject.name} got no new block after block {found.height}: run `ophion doctor` on all nodes.")
    print()
    if reasons:
        print(f"Do not go on after step {step}:")
        for reason in reasons:
            print(f"   {reason}")
        return 1
    if step == len(nodes):
        print(f"Step {step} is done. The upgrade is complete.")
        return 0
    print(f"Step {step} is done. Go on with step {step + 1}: {nodes[step].name}.")
    if nodes[step].role is NodeRole.VALIDATOR:
        # query the order of proposers again, because the network has produced blocks during the wait
        turns = look_at(nodes, token).turns
        print(turns.advice(network.addresses[nodes[step].name]))
    return 0


ROLLING_UPGRADE_COMMAND: Final = Command(
    "rolling-upgrade",
    "Plan the upgrade of a running network node by node, and check it between the steps.",
    rolling_upgrade,
    RollingUpgradeOptions,
    examples=(
        "ophion operator rolling-upgrade --plan=network.toml",
        "ophion operator rolling-upgrade --plan=network.toml --check=1",
    ),
)
