"""`ophion simulate`: simulates consensus networks by seed and checks their invariants."""

from __future__ import annotations

import os
from collections.abc import Iterator
from enum import Enum

from ophion.cli.command import Command, CommandSession
from ophion.cli.progress import Progress
from ophion.consensus.bft.round_timing import RoundTiming
from ophion.errors import ConfigError
from ophion.runtime.options import Options, at_least, between, option, problems_of
from ophion.testing.simulation.seed_runs import SeedOptions, SeedOutcome, SeedSummary, run_many, run_seed
from ophion.testing.simulation.trace import Trace

_TRACED_ROWS = 60
_SHOWN_FAILURES = 20


def _positive(value: float) -> None:
    if value <= 0:
        raise ValueError("must be above 0")


class SimulatedProtocol(Enum):
    """Consensus protocol of the simulated network."""

    IBFT2 = "ibft2"
    QBFT = "qbft"
    CLIQUE = "clique"


class SimulateOptions(Options):
    """Options: protocol, seeds, timing and faults of `ophion simulate`."""

    protocol: SimulatedProtocol = option(
        "--protocol", default=SimulatedProtocol.IBFT2, help="Consensus protocol of the network."
    )
    seed: int = option("--seed", default=0, check=at_least(0), help="The first seed. A seed determines the whole run.")
    seeds: int = option("--seeds", default=1, check=at_least(1), help="Number of seeds to run, counting up.")
    validators: int = option("--validators", default=4, check=between(1, 100), help="Number of validators.")
    byzantine: int | None = option(
        "--byzantine",
        default=None,
        check=at_least(0),
        help="Number of misbehaving validators. (default: chosen by the seed, within the tolerance)",
    )
    storm: float = option(
        "--storm", default=20.0, check=at_least(0), help="Seconds of faults before the network recovers."
    )
    block_period: float = option(
        "--block-period", default=1.0, check=at_least(0.1), help="Seconds between blocks, with fractions if needed."
    )
    request_timeout: float = option(
        "--request-timeout", default=1.5, check=_positive, help="Timeout of round 0 in seconds; doubles every round."
    )
    max_timeout: float = option("--max-timeout", default=6.0, check=_positive, help="Maximum round timeout.")
    pass_over: bool = option(
        "--pass-over", default=True, help="Request the next round at once if the proposer is absent."
    )
    diagram: bool = option("--diagram", default=False, help="Draw the messages of the first seed as a sequence.")
    rows: int = option(
        "--rows", default=_TRACED_ROWS, check=at_least(1), help="Maximum rows of a diagram; shows the last rows."
    )
    processes: int = option(
        "--processes", default=0, check=at_least(0), help="Number of processes; 0 uses one per processor."
    )

    def problems(self) -> Iterator[str]:
        """Yield a message for each pair of contradictory options."""
        if self.byzantine is not None and self.byzantine >= self.validators:
            yield f"--byzantine={self.byzantine} leaves no honest validator of {self.validators}"
        if self.protocol is SimulatedProtocol.CLIQUE and self.block_period != 1:
            yield "--block-period has no effect with --protocol=clique, whose period is 1 second"

    def seed_options(self) -> SeedOptions:
        """Return the options that all seeds of this run share."""
        timing = RoundTiming(self.block_period, self.request_timeout, self.max_timeout)
        return SeedOptions(self.protocol.value, self.validators, self.byzantine, self.storm, timing, self.pass_over)


def simulate(options: SimulateOptions, session: CommandSession) -> int:
    """Run one simulation per seed. Returns 1 if a simulation breaks an invariant of consensus."""
    if problems := problems_of(options):
        raise ConfigError(problems)
    seed_options = options.seed_options()
    if options.diagram:
        _show(options.seed, seed_options, options.rows)
    summary = SeedSummary()
    processes = options.processes or os.cpu_count() or 1
    progress = Progress("Seeds", options.seeds)
    for outcome in run_many(options.seed, options.seeds, seed_options, processes):
        summary.add(outcome)
        if outcome.violations:
            progress.clear()
            _report(outcome, len(summary.failures), options)
        progress.update(summary.seeds, f"{len(summary.failures)} violations")
    progress.clear()
    print(
        f"{summary.seeds} {'seed' if summary.seeds == 1 else 'seeds'} run, {summary.blocks} blocks committed, "
        f"{len(summary.failures)} violations (slowest recovery {summary.slowest_healing_s:.1f} s after healing, "
        f"highest round {summary.highest_round}, {summary.messages_per_block:.0f} messages per block then)"
    )
    return 1 if summary.failures else 0


def _report(outcome: SeedOutcome, number: int, options: SimulateOptions) -> None:
    """Print the first failure with its trace, and further failures in one line each."""
    if number > _SHOWN_FAILURES:
        return
    for violation in outcome.violations:
        print(f"seed {outcome.seed}: {violation}")
    if number == 1 and not options.diagram:
        _show(outcome.seed, options.seed_options(), options.rows)
    print(f"replay: {replay_command(outcome.seed, options)}")


def _show(seed: int, options: SeedOptions, rows: int) -> None:
    trace = Trace(options.validators)
    run_seed(seed, options, trace)
    print(trace.diagram(rows))


def replay_command(seed: int, options: SimulateOptions) -> str:
    """Return the command that replays one seed with its trace."""
    words = [f"ophion simulate --protocol={options.protocol.value} --seed={seed} --validators={options.validators}"]
    default = SimulateOptions()
    if options.byzantine is not None:
        words.append(f"--byzantine={options.byzantine}")
    for flag, value, default_value in (
        ("--storm", options.storm, default.storm),
        ("--block-period", options.block_period, default.block_period),
        ("--request-timeout", options.request_timeout, default.request_timeout),
        ("--max-timeout", options.max_timeout, default.max_timeout),
    ):
        if value != default_value:
            words.append(f"{flag}={value:g}")
    if not options.pass_over:
        words.append("--pass-over=false")
    return " ".join([*words, "--diagram"])


COMMANDS = (
    Command(
        "simulate",
        "Simulate consensus networks with faults and check their invariants; a seed determines each run.",
        simulate,
        SimulateOptions,
        examples=(
            "ophion simulate --seeds=1000",
            "ophion simulate --protocol=qbft --validators=7 --byzantine=2 --seeds=10000",
            "ophion simulate --protocol=clique --seed=7 --diagram",
        ),
    ),
)
