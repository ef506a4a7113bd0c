"""Property tests of contracts: random calls search for the shortest sequence that breaks an invariant.

    result = check_invariants(chain, [token], {"supply": lambda: token.totalSupply() == total()}, seed=1)
    result.raise_failure()

A run starts from a snapshot. Each step calls a random function of a target with random arguments from a random sender;
reverts are expected. After each step every invariant is checked. A failing sequence is shortened: first by leaving out
calls, then by smaller arguments. The same seed repeats a run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from random import Random
from typing import Any

from msgspec import Struct

from ophion.abi.addresses import checksum_address
from ophion.abi.codec import Codec
from ophion.abi.interface import Function
from ophion.errors import OphionError
from ophion.sdk.arguments import UINT64, whole_number
from ophion.sdk.backend import CallSpec
from ophion.sdk.chain import Chain
from ophion.sdk.contract import Contract
from ophion.sdk.errors import ArgumentError, Reverted, TransactionRefused
from ophion.sdk.sandbox import without_blocks

Invariant = Callable[[], bool]

_EDGES = (0, 1, 2, 3, 10, 100, 1000, 10**6, 10**18)
_MAX_LENGTH = 4


class InvariantBroken(OphionError):
    """Raised when an invariant does not hold. The message has the shortest sequence of calls."""


class Step(Struct, frozen=True):
    """One call in a sequence of random calls."""

    contract: Contract
    function: Function
    args: tuple[Any, ...]
    sender: bytes

    def __str__(self) -> str:
        args = ", ".join(repr(one) for one in self.args)
        name = f"{self.contract.contract_name}.{self.function.name}"
        return f"{name}({args}) from {checksum_address(self.sender)}"


class InvariantResult(Struct, frozen=True):
    """Result of a search for a broken invariant."""

    calls: int
    """Number of calls of the search, without the calls that shorten a failing sequence."""
    reverts: int
    seed: int
    invariant: str | None = None
    """The broken invariant; None when all hold."""
    sequence: tuple[Step, ...] = ()
    """The shortest sequence that breaks the invariant."""

    def raise_failure(self) -> None:
        """Raise `InvariantBroken` when an invariant is broken."""
        if self.invariant is not None:
            raise InvariantBroken(str(self))

    def __str__(self) -> str:
        if self.invariant is None:
            return f"all invariants hold after {self.calls} calls ({self.reverts} reverted, seed={self.seed})"
        lines = [f"  {number}. {step}" for number, step in enumerate(self.sequence, 1)]
        return "\n".join([f"the invariant '{self.invariant}' breaks (seed={self.seed}) after:", *lines])


class _Search:
    def __init__(
        self,
        chain: Chain,
        targets: Sequence[Contract],
        invariants: Mapping[str, Invariant],
        senders: Sequence[bytes],
        functions: Sequence[str] | None,
        random: Random,
    ) -> None:
        self.chain = chain
        self.invariants = invariants
        self.senders = senders
        self.random = random
        self.addresses = [*senders, *(one.raw for one in targets)]
        self.calls = self.reverts = 0
        self.choices = [
            (target, function)
            for target in targets
            for several in target.abi.functions.values()
            for function in several
            if not function.is_view and (functions is None or function.name in functions)
        ]
        if not self.choices:
            raise InvariantBroken("the targets have no function that changes state")

    # --- random values --------------------------------------------------------------------------

    def step(self) -> Step:
        contract, function = self.random.choice(self.choices)
        args = tuple(self.value(codec) for codec in function.inputs.codecs)
        return Step(contract, function, args, self.random.choice(self.senders))

    def value(self, codec: Codec) -> Any:
        random, name = self.random, codec.name
        if codec.components:
            return tuple(self.value(one) for one in codec.components)
        if codec.item is not None:
            item, length = codec.item, codec.length
            count = random.randrange(_MAX_LENGTH) if length is None else length
            return [self.value(item) for _ in range(count)]
        if name == "address":
            return checksum_address(random.choice(self.addresses))
        if name == "bool":
            return random.random() < 0.5  # `random` is the generator with the seed of the run
        if name.startswith(("uint", "int")):
            return self._number(name)
        if name == "string":
            return "".join(random.choice("abc xyz") for _ in range(random.randrange(8)))
        size = random.randrange(40) if name == "bytes" else int(name.removeprefix("bytes") or 24)
        return random.randbytes(size)

    def _number(self, name: str) -> int:
        random, is_signed = self.random, name.startswith("int")
        bits = int(name.removeprefix("u").removeprefix("int")) - is_signed
        kind = random.randrange(4)
        if kind == 0:
            found = random.choice(_EDGES) % (1 << bits)
        elif kind == 1:
            found = (1 << bits) - 1 - random.randrange(3)
        else:
            found = random.getrandbits(random.randrange(1, bits + 1))
        return -found if is_signed and kind == 3 else found

    # --- runs -----------------------------------------------------------------------------------

    def apply(self, step: Step) -> bool:
        """Make a call. Returns whether it succeeded."""
        self.calls += 1
        data = step.function.encode(step.args)
        try:
            has_succeeded = bool(self.chain.backend.send(CallSpec(step.sender, step.contract.raw, data)).succeeded)
        except TransactionRefused:
            has_succeeded = False
        self.reverts += not has_succeeded
        return has_succeeded

    def broken(self) -> str | None:
        """Return the first broken invariant. An invariant that raises `Reverted` counts as broken."""
        for name, check in self.invariants.items():
            try:
                if not check():
                    return name
            except Reverted:
                return name
        return None

    def breaks(self, steps: Sequence[Step], name: str) -> bool:
        """Whether a sequence breaks an invariant when it starts from the initial state."""
        with self.chain.snapshot():
            for step in steps:
                self.apply(step)
            return self.broken() == name

    def shortest(self, steps: list[Step], name: str) -> list[Step]:
        """Shorten a failing sequence: remove groups of calls, large groups first, then make arguments smaller."""
        size = max(1, len(steps) // 2)
        while size:
            start = 0
            while start < len(steps):
                shorter = steps[:start] + steps[start + size :]
                if self.breaks(shorter, name):
                    steps = shorter
                else:
                    start += size
            size //= 2
        for position in range(len(steps)):
            steps = self._smaller(steps, position, name)
        return steps

    def _smaller(self, steps: list[Step], position: int, name: str) -> list[Step]:
        for place, value in enumerate(steps[position].args):
            if not isinstance(value, int) or isinstance(value, bool):
                continue
            for candidate in (*_EDGES[:4], *(value >> shift for shift in (128, 64, 32, 16, 8, 4, 2, 1))):
                if abs(candidate) >= abs(steps[position].args[place]):
                    continue
                step = steps[position]
                args = (*step.args[:place], candidate, *step.args[place + 1 :])
                tried = [
                    *steps[:position],
                    Step(step.contract, step.function, args, step.sender),
                    *steps[position + 1 :],
                ]
                if self.breaks(tried, name):
                    steps = tried
                    break
        return steps


def check_invariants(
    chain: Chain,
    targets: Sequence[Contract],
    invariants: Mapping[str, Invariant],
    *,
    runs: int = 20,
    depth: int = 50,
    seed: int = 0,
    senders: Sequence[Any] | None = None,
    functions: Sequence[str] | None = None,
    has_blocks: bool = False,
) -> InvariantResult:
    """Search for a sequence of calls that breaks an invariant.

    Runs `runs` sequences of `depth` calls from the current state and restores this state afterwards. `functions` are
    the names of the functions to call, by default all. The result has the shortest sequence found; `raise_failure`
    turns a broken invariant into a test failure.

    The calls of a sequence are executed as if they were in one block. With `has_blocks`, each call is a transaction in
    a block of its own. This mode is slower; it is for contracts and invariants that depend on block number, time or
    fees.
    """
    _check(targets, invariants, functions)
    for name, value in (("runs", runs), ("depth", depth), ("seed", seed)):
        whole_number(name, value, UINT64)
    with nullcontext() if has_blocks else without_blocks(chain):
        return _searched(chain, targets, invariants, runs, depth, seed, senders, functions)


def _check(targets: Any, invariants: Any, functions: Any) -> None:
    """Check the arguments of `check_invariants`."""
    if not isinstance(targets, list | tuple) or not all(isinstance(one, Contract) for one in targets):
        raise ArgumentError("targets: a list of contracts is expected.")
    if not isinstance(invariants, Mapping) or not all(callable(one) for one in invariants.values()):
        raise ArgumentError("invariants: a dictionary from names to functions without arguments is expected.")
    if functions is None:
        return
    if isinstance(functions, str) or not isinstance(functions, Iterable):
        raise ArgumentError("functions: a list of function names is expected.")
    known = {name for one in targets for name in one.abi.functions}
    unknown = [str(one) for one in functions if one not in known]
    if unknown:
        raise ArgumentError(f"functions: no target has a function named {', '.join(unknown)}.")


def _searched(
    chain: Chain,
    targets: Sequence[Contract],
    invariants: Mapping[str, Invariant],
    runs: int,
    depth: int,
    seed: int,
    senders: Sequence[Any] | None,
    functions: Sequence[str] | None,
) -> InvariantResult:
    from ophion.sdk.account import raw_address

    chosen = [raw_address(one) for one in (chain.accounts[:3] if senders is None else senders)]
    search = _Search(chain, targets, invariants, chosen, functions, Random(seed))
    with chain.snapshot():
        name = search.broken()
        if name is not None:
            return InvariantResult(0, 0, seed, name)
        for _ in range(runs):
            steps: list[Step] = []
            with chain.snapshot():
                while name is None and len(steps) < depth:
                    steps.append(search.step())
                    # check the invariants only after a successful call, because a failed call does not change the state
                    name = search.broken() if search.apply(steps[-1]) else None
            if name is not None:
                calls, reverts = search.calls, search.reverts
                return InvariantResult(calls, reverts, seed, name, tuple(search.shortest(steps, name)))
    return InvariantResult(search.calls, search.reverts, seed)
