"""Options of `ophion quickstart`."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from pathlib import Path

from ophion.node.config import NodeConfig
from ophion.quickstart.network_directory import DEFAULT_DIRECTORY
from ophion.quickstart.plan import DEFAULT_PERIOD_S, Consensus, NetworkPlan
from ophion.runtime.options import Options, load, option, port, problems_of, read_flag, specs_of


class PlaceOptions(Options):
    """Options: folder of the network for `ophion quickstart`."""

    directory: Path = option(
        "--directory",
        default=DEFAULT_DIRECTORY,
        metavar="DIRECTORY",
        help="Directory of the network.",
    )

    @property
    def place(self) -> Path:
        return self.directory.resolve()


class RunOptions(PlaceOptions):
    """Options: whether `ophion quickstart` runs the network in the background."""

    detach: bool = option(
        "--detach", "-d", default=False, help="Run in the background; return when every node has a block."
    )


class UpOptions(RunOptions):
    """Options: consensus, validators and features of a new quickstart network."""

    consensus: Consensus = option("--consensus", default=Consensus.QBFT, help="Consensus of the network.")
    validators: int | None = option(
        "--validators", "--nodes", default=None, help="Number of block producers. (default: 4, on the dev network 1)"
    )
    port: int | None = option(
        "--port",
        default=None,
        check=port,
        help="Port of the network's address; 0 uses a free port. (default: 8080, or a free port if that is in use)",
    )
    period_s: float = option(
        "--block-period",
        default=DEFAULT_PERIOD_S,
        metavar="SECONDS",
        help="Seconds between blocks. IBFT 2.0 and QBFT allow fractions down to 0.1.",
    )
    free_gas: bool = option("--free-gas", default=False, help="Make gas free.")
    permissions: bool = option("--permissions", default=False, help="Permit only listed nodes and accounts.")
    privacy: bool = option(
        "--privacy", default=False, help="Add three members with private transactions; gas is then free."
    )
    print_commands: bool = option(
        "--print-commands", default=False, help="Create the files and show the commands, but start no process."
    )

    @property
    def plan(self) -> NetworkPlan:
        default_count = 1 if self.consensus is Consensus.DEV else 4
        count = default_count if self.validators is None else self.validators
        # private transactions need free gas: a marker transaction pays the gas price of its private transaction, which
        # is usually 0 (operations.md 15.1)
        is_free = self.free_gas or self.privacy
        return NetworkPlan(self.consensus, count, self.period_s, self.port, is_free, self.permissions, self.privacy)

    def problems(self) -> Iterator[str]:
        yield from self.plan.problems()
        if self.privacy:
            yield from _privacy_warnings()


def _privacy_warnings() -> list[str]:
    """Return the problems that a node with --privacy-enabled would report."""
    flags = {flag: spec for spec in specs_of(NodeConfig) for flag in spec.declaration.flags}
    return problems_of(load(NodeConfig, [read_flag("--privacy-enabled", deque(), flags)]).config.privacy)


class LogOptions(PlaceOptions):
    """Options: whether `ophion quickstart logs` follows the logs."""

    follow: bool = option("--follow", "-f", default=False, help="Follow the log until Ctrl-C.")


class ProxyOptions(Options):
    """Options: site file and port of `ophion quickstart proxy`."""

    site: Path = option("--site", help="Description of the network, as `up` writes it.")
    port: int = option("--port", default=8080, check=port, help="Port to listen on; 0 uses a free port.")
