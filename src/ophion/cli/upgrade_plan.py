"""The plan of a rolling upgrade: reads the description of a network and puts its nodes in order."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from ophion.cli.input_output import read_input
from ophion.consensus.bft.validator_set import tolerated_faults
from ophion.errors import CommandError, DecodeError
from ophion.primitives.hexcodec import parse_data_lenient
from ophion.primitives.types import ADDRESS_LENGTH
from ophion.runtime.options import is_url

_MAX_NODES: Final = 1000


class NodeRole(Enum):
    """Role of a node in the network."""

    FOLLOWER = "follower"
    VALIDATOR = "validator"


class NodeEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """One node in the file of `--plan`."""

    name: str
    rpc: str
    role: NodeRole
    address: str | None = None
    """Address of the validator, if its key is not the node key."""


class UpgradeDescription(Struct, frozen=True, forbid_unknown_fields=True):
    """Content of the file of `--plan`: the nodes of the network and the expected version."""

    nodes: tuple[NodeEntry, ...]
    version: str | None = None
    """Text that the client version of every upgraded node must contain. If None, the version is not checked."""


def read_description(file: Path) -> UpgradeDescription:
    """Read a description in JSON or TOML. Raises `CommandError` with the first problem."""
    text = read_input(file, f"Unable to read the network description {file}")
    try:
        values = msgspec.json.decode(text) if file.suffix == ".json" else tomllib.loads(text)
        found = msgspec.convert(values, UpgradeDescription)
    except (msgspec.DecodeError, msgspec.ValidationError, tomllib.TOMLDecodeError) as error:
        raise CommandError(f"{file} is not a network description: {error}") from error
    problem = next(_problems(found), None)
    if problem is not None:
        raise CommandError(f"{file}: {problem}")
    return found


def _problems(description: UpgradeDescription) -> Iterator[str]:
    nodes = description.nodes
    if not 0 < len(nodes) <= _MAX_NODES:
        yield f"'nodes' must list 1 to {_MAX_NODES} nodes, not {len(nodes)}"
    for member in ("name", "rpc"):
        values = [getattr(node, member) for node in nodes]
        twice = next((value for value in values if values.count(value) > 1), None)
        if twice is not None:
            yield f"two nodes have the {member} '{twice}'"
    for node in nodes:
        if not is_url(node.rpc, "http", "https"):
            yield f"'rpc' of {node.name} must be http://HOST:PORT, not '{node.rpc}'"
        if node.address is not None and not _is_address(node.address):
            yield f"'address' of {node.name} is not an address"


def _is_address(text: str) -> bool:
    try:
        return len(parse_data_lenient(text, ADDRESS_LENGTH)) == ADDRESS_LENGTH
    except DecodeError:
        return False


def ordered_nodes(description: UpgradeDescription) -> list[NodeEntry]:
    """Return the nodes in the order of the upgrade: followers, then validators, each in the order of the file."""
    return sorted(description.nodes, key=lambda node: node.role is NodeRole.VALIDATOR)


def max_offline(validators: int, is_clique: bool) -> int:
    """Return how many validators may be offline while the network produces blocks."""
    return (validators - 1) // 2 if is_clique else tolerated_faults(validators)


class ProposerTurns(Struct, frozen=True):
    """The order of proposers, and the producer of the head."""

    validators: tuple[str, ...]
    """Addresses in ascending order, which is the order of proposers."""
    producer: str
    """Producer of the head."""
    period_s: float

    def blocks_until(self, validator: str) -> int | None:
        """Return the number of blocks until a validator proposes: 1 for the next block. None if the turn is unknown."""
        if validator not in self.validators:
            return None
        count = len(self.validators)
        last = self.validators.index(self.producer) if self.producer in self.validators else count - 1
        return (self.validators.index(validator) - last - 1) % count + 1

    def advice(self, validator: str) -> str:
        """Return advice on when to stop a validator, so that the validator misses as few turns as possible."""
        count = len(self.validators)
        left = self.blocks_until(validator)
        if left is None:
            return "It is not a validator of the head: stop it at any time."
        seconds = left * self.period_s
        if left == count:
            return f"Stop it now: it produced the head, its next turn comes in {left} blocks ({seconds:.0f} s)."
        return (
            f"Wait for {left} {'block' if left == 1 else 'blocks'} ({seconds:.0f} s), until it has produced one. "
            f"Then stop it: it has {count * self.period_s:.0f} s until its next turn."
        )


def plan_lines(
    file: Path, description: UpgradeDescription, validators: Sequence[str], is_clique: bool, period_s: float
) -> Iterator[str]:
    """Yield the text lines of the upgrade plan, node by node."""
    nodes = ordered_nodes(description)
    spare = max_offline(len(validators), is_clique)
    command = f"ophion operator rolling-upgrade --plan={file}"
    yield ""
    yield f"Rolling upgrade of {len(nodes)} nodes to {description.version or 'the new version'}, one node at a time."
    yield f"The network has {len(validators)} validators. At most {spare} of them may be offline at any time."
    if spare == 0:
        yield "Warning: the network produces no blocks while one of its validators restarts."
    yield ""
    yield f"Step 0. Check that the network is healthy:  {command} --check=0"
    for number, node in enumerate(nodes, 1):
        yield ""
        yield f"Step {number}. {node.name} ({node.role.value}, {node.rpc})"
        yield "   a. Make a backup: ophion storage backup --data-path=DIRECTORY --to=DIRECTORY"
        if node.role is NodeRole.VALIDATOR:
            yield "   b. Wait until it has produced a block. The check of the step before says when."
            yield f"   c. Stop it, install the new version, start it within {len(validators) * period_s:.0f} s."
        else:
            yield "   b. Stop it, install the new version, start it."
        yield f"   {'d' if node.role is NodeRole.VALIDATOR else 'c'}. Check it:  {command} --check={number}"
    yield ""
    yield "Abort if a check fails and its advice does not help within ten minutes, and always if"
    yield "   - two nodes have different blocks at one height: stop the upgraded node, keep its data for analysis;"
    yield f"   - more than {spare} of the validators are offline: start them again before anything else;"
    yield f"   - no block comes for {max(10 * period_s, 60):.0f} s while a quorum is online."
    yield "To go back, stop the node and install the earlier version. If it refuses the database of the new version,"
    yield "restore the backup of step a. The node then fetches the later blocks from its peers."
