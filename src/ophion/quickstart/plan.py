"""The plan of a network, stored in `network.json` so that the network can be resumed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from enum import Enum
from math import isfinite
from pathlib import Path
from typing import Annotated, Final

from msgspec import Meta, Struct, convert
from msgspec.structs import asdict

from ophion.chainspec.consensus_parameters import MIN_BLOCK_PERIOD_MS
from ophion.errors import CommandError
from ophion.runtime.operator_files import content_of

MAX_VALIDATORS: Final = 50
DEFAULT_PERIOD_S: Final = 2.0
MIN_PERIOD_S: Final = MIN_BLOCK_PERIOD_MS / 1000
MEMBERS: Final = 3
"""Number of nodes with private transactions, if private transactions are enabled."""
RPC_NODE: Final = "rpcnode"
PROXY: Final = "proxy"
Port = Annotated[int, Meta(ge=0, lt=1 << 16)]


class Consensus(Enum):
    """Consensus protocol of the network."""

    QBFT = "qbft"
    IBFT2 = "ibft2"
    CLIQUE = "clique"
    DEV = "dev"


CHAIN_IDS: Final = {Consensus.QBFT: 1337, Consensus.IBFT2: 6174, Consensus.CLIQUE: 1729, Consensus.DEV: 2018}
"""Chain ids of the well-known quickstart networks (operations.md 15)."""


class PlannedRole(Enum):
    """Role of a node in the planned network."""

    RPC = "rpc"
    VALIDATOR = "validator"
    MEMBER = "member"
    """A node with private transactions."""


class PlannedNode(Struct, frozen=True):
    """One node of the planned network."""

    name: str
    role: PlannedRole
    number: int
    """Number among nodes of the same role, from 1."""


class NetworkPlan(Struct, frozen=True, forbid_unknown_fields=True):
    """The network that `ophion quickstart` creates: its nodes, ports and features."""

    consensus: Consensus
    validators: int
    period_s: float
    """Block period in seconds. On the development network, 0 makes one block per transaction."""
    port: Port | None
    """Port of the proxy. If None, the default port is used, or a free port if the default port is in use."""
    has_free_gas: bool
    has_permissions: bool
    has_privacy: bool = False

    def problems(self) -> Iterator[str]:
        """Yield a message for each contradiction in the plan."""
        if not 1 <= self.validators <= MAX_VALIDATORS:
            yield f"--validators must be between 1 and {MAX_VALIDATORS}, not {self.validators}."
        if self.consensus is Consensus.DEV and self.validators != 1:
            yield "--validators has no meaning with --consensus=dev: one node produces the blocks."
        yield from self._period_problems()
        if self.has_permissions and self.consensus is Consensus.DEV:
            yield "--permissions needs a network with a genesis file of its own: not --consensus=dev."
        if self.has_privacy and self.consensus is Consensus.DEV:
            yield "--privacy needs a network with a genesis file of its own: not --consensus=dev."

    def _period_problems(self) -> Iterator[str]:
        is_bft = self.consensus in (Consensus.QBFT, Consensus.IBFT2)
        least_s = 0 if self.consensus is Consensus.DEV else MIN_PERIOD_S if is_bft else 1
        if not isfinite(self.period_s) or self.period_s < least_s:
            yield (
                f"--block-period must be at least {MIN_PERIOD_S:g} seconds with IBFT 2.0 and QBFT and 1 with Clique,"
                f" not {self.period_s:g}; 0 is for --consensus=dev."
            )
        elif self.consensus is Consensus.CLIQUE and self.period_s % 1:
            yield f"--block-period must be whole seconds with --consensus=clique, not {self.period_s:g}."

    @property
    def nodes(self) -> tuple[PlannedNode, ...]:
        """Return the RPC node, then the validators, then the nodes with private transactions."""
        name_format = "minernode" if self.consensus is Consensus.DEV else "validator{}"
        numbers = range(1, self.validators + 1)
        members = [PlannedNode(name_format.format(number), PlannedRole.VALIDATOR, number) for number in numbers]
        private = range(1, MEMBERS + 1) if self.has_privacy else ()
        members += [PlannedNode(f"member{number}", PlannedRole.MEMBER, number) for number in private]
        return (PlannedNode(RPC_NODE, PlannedRole.RPC, 1), *members)

    @property
    def chain_id(self) -> int:
        return CHAIN_IDS[self.consensus]

    def text(self) -> str:
        """Return the content of `network.json`."""
        period = self.period_s if self.period_s % 1 else int(self.period_s)
        return json.dumps(asdict(self) | {"consensus": self.consensus.value, "period_s": period}, indent=2) + "\n"

    @classmethod
    def read(cls, path: Path) -> NetworkPlan:
        """Read `network.json`. If it is invalid, `CommandError` says what to do."""
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
                f" or delete {path.parent} to create another there."
            )
        return plan
