"""What a network consists of; `network.json` keeps it, so that a stopped network can be resumed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Annotated, Final

from msgspec import Meta, Struct, convert
from msgspec.structs import asdict

from ophion.errors import CommandError
from ophion.runtime.operator_files import content_of

MAX_VALIDATORS: Final = 50
DEFAULT_PERIOD_S: Final = 2
MEMBERS: Final = 3
"""Nodes with private transactions, where they are asked for."""
RPC_NODE: Final = "rpcnode"
PROXY: Final = "proxy"
Port = Annotated[int, Meta(ge=0, lt=1 << 16)]


class Consensus(Enum):
    """How blocks are made."""

    QBFT = "qbft"
    IBFT2 = "ibft2"
    CLIQUE = "clique"
    DEV = "dev"


CHAIN_IDS: Final = {Consensus.QBFT: 1337, Consensus.IBFT2: 6174, Consensus.CLIQUE: 1729, Consensus.DEV: 2018}
"""Those of the networks that people know (operations.md 15)."""


class Role(Enum):
    """What a node is for."""

    RPC = "rpc"
    VALIDATOR = "validator"
    MEMBER = "member"
    """Of private transactions."""


class PlannedNode(Struct, frozen=True):
    """One node."""

    name: str
    role: Role
    number: int
    """Among those of its role, from 1."""


class NetworkPlan(Struct, frozen=True, forbid_unknown_fields=True):
    """A network as it was asked for."""

    consensus: Consensus
    validators: int
    period_s: int
    """0 makes a block for each transaction, on the development network."""
    port: Port | None
    """Of the proxy; None for the usual one, or a free one where that is taken."""
    has_free_gas: bool
    has_permissions: bool
    has_privacy: bool = False

    def problems(self) -> Iterator[str]:
        """What cannot be, in sentences."""
        if not 1 <= self.validators <= MAX_VALIDATORS:
            yield f"--validators must be between 1 and {MAX_VALIDATORS}, not {self.validators}."
        if self.consensus is Consensus.DEV and self.validators != 1:
            yield "--validators has no meaning with --consensus=dev: one node makes the blocks."
        if self.period_s < (0 if self.consensus is Consensus.DEV else 1):
            yield f"--block-period must be at least one second, not {self.period_s}; 0 is for --consensus=dev."
        if self.has_permissions and self.consensus is Consensus.DEV:
            yield "--permissions needs a network with a genesis file of its own: not --consensus=dev."
        if self.has_privacy and self.consensus is Consensus.DEV:
            yield "--privacy needs a network with a genesis file of its own: not --consensus=dev."

    @property
    def nodes(self) -> tuple[PlannedNode, ...]:
        """The node that clients talk to, then those that make blocks, then those with private transactions."""
        makers = "minernode" if self.consensus is Consensus.DEV else "validator{}"
        numbers = range(1, self.validators + 1)
        members = [PlannedNode(makers.format(number), Role.VALIDATOR, number) for number in numbers]
        private = range(1, MEMBERS + 1) if self.has_privacy else ()
        members += [PlannedNode(f"member{number}", Role.MEMBER, number) for number in private]
        return (PlannedNode(RPC_NODE, Role.RPC, 1), *members)

    @property
    def chain_id(self) -> int:
        return CHAIN_IDS[self.consensus]

    def text(self) -> str:
        """As `network.json`."""
        return json.dumps(asdict(self) | {"consensus": self.consensus.value}, indent=2) + "\n"

    @classmethod
    def read(cls, path: Path) -> NetworkPlan:
        """`CommandError`, with what to do, when the file is not one of ours."""
        try:
            plan = convert(json.loads(content_of(path)), cls)
            reason = next(plan.problems(), "")
        except OSError as error:
            raise CommandError(f"Unable to read {path}: {error.strerror}") from None
        except (ValueError, RecursionError) as error:
            reason = str(error)
        if reason:
            raise CommandError(
                f"{path} does not describe a network ({reason.rstrip('.')}): put it back as it was,"
                f" or delete {path.parent} to make another there."
            )
        return plan
