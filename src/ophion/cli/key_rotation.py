"""`ophion keys check-rotation`: reports which steps of a validator key rotation are done, and the next step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from ophion.cli.command import CommandSession
from ophion.cli.node_client import RpcNode, read_token
from ophion.cli.url_option import read_url
from ophion.errors import CommandError, ConfigError
from ophion.primitives.hexcodec import data as hex_text
from ophion.primitives.types import Address
from ophion.runtime.options import Options, option, problems_of, read_address

_BLOCKS_PER_VALIDATOR: Final = 4
"""The new validator must have produced one of the last N blocks. N is this factor times the number of validators."""


class RotationOptions(Options):
    """Options: nodes, old key and new key of `ophion keys check-rotation`."""

    urls: tuple[str, ...] = option(
        "--rpc",
        default=(),
        metavar="URL",
        parse=read_url("http", "https"),
        help="JSON-RPC of the validators, with the group IBFT, QBFT or CLIQUE; separate several by commas.",
    )
    old: Address = option("--old", parse=read_address, metavar="ADDRESS", help="Address of the key to retire.")
    new: Address = option("--new", parse=read_address, metavar="ADDRESS", help="Address of the key that replaces it.")
    token_file: Path | None = option(
        "--token-file", default=None, help="File with a token, for nodes with authentication."
    )

    def problems(self) -> Iterator[str]:
        if not self.urls:
            yield "Missing required option: '--rpc=URL[,URL...]'"
        if self.old == self.new:
            yield "--old and --new are the same address."


class EngineMethods(Struct, frozen=True):
    """Names of the JSON-RPC methods of one consensus engine."""

    validators: str
    propose: str
    pending: str
    discard: str
    metrics: str


def _bft(prefix: str) -> EngineMethods:
    return EngineMethods(
        f"{prefix}_getValidatorsByBlockNumber",
        f"{prefix}_proposeValidatorVote",
        f"{prefix}_getPendingVotes",
        f"{prefix}_discardValidatorVote",
        f"{prefix}_getSignerMetrics",
    )


ENGINES: Final = (
    _bft("qbft"),
    _bft("ibft"),
    EngineMethods(
        "clique_getSigners", "clique_propose", "clique_proposals", "clique_discard", "clique_getSignerMetrics"
    ),
)


class RotationView(Struct, frozen=True):
    """Validators, votes and block producers that one node reports."""

    url: str
    validators: frozenset[str]
    pending: dict[str, bool]
    """Votes that the node casts, by address: true adds the address, false removes it."""
    producers: frozenset[str]
    """Validators that produced one of the latest blocks."""


class RotationStep(Struct, frozen=True):
    """One step of a validator key rotation."""

    name: str
    is_done: bool
    action: str
    """Instruction for the operator if the step is not done."""


def rotation_steps(methods: EngineMethods, views: Sequence[RotationView], old: str, new: str) -> list[RotationStep]:
    """Return the steps in order. The old key is removed only after the new key has produced a block."""
    validators = views[0].validators
    needed = len(validators) // 2 + 1
    is_agreed = all(view.validators == validators for view in views)

    def votes(address: str, adds: bool) -> str:
        cast = [view.url for view in views if view.pending.get(address) is adds]
        call = f"{methods.propose}({address}, {str(adds).lower()})"
        missing = max(needed - len(cast), 0)
        plural = "" if missing == 1 else "s"
        return f"{len(cast)} of {needed} votes are cast. Call {call} on {missing} more validator{plural}."

    is_producing = any(new in view.producers for view in views)
    left = sorted({view.url for view in views if {old, new} & view.pending.keys()})
    return [
        RotationStep("The nodes agree on the validators.", is_agreed, "Wait until all nodes have the same head."),
        RotationStep("The new key is a validator.", new in validators, votes(new, True)),
        RotationStep(
            "The new key produces blocks.",
            is_producing,
            "Start the node with the new key and connect it. Do not remove the old key before this step is done.",
        ),
        RotationStep("The old key is no validator.", old not in validators, votes(old, False)),
        RotationStep("No vote is left.", not left, f"Call {methods.discard} for both addresses on {', '.join(left)}."),
    ]


def check_rotation(options: RotationOptions, session: CommandSession) -> int:
    """Print the steps. Returns 0 if the rotation is complete."""
    if problems := problems_of(options):
        raise ConfigError(problems)
    token = read_token(options.token_file)
    methods, _ = engine_methods(options.urls[0], RpcNode(options.urls[0], token))
    views = [_view(url, RpcNode(url, token), methods) for url in options.urls]
    steps = rotation_steps(methods, views, hex_text(options.old), hex_text(options.new))
    is_complete = True
    for step in steps:
        print(f"{'done' if step.is_done else 'next' if is_complete else 'later'}  {step.name}")
        if not step.is_done:
            if is_complete:
                print(f"      {step.action}")
            is_complete = False
    print("The rotation is complete. Destroy the old key." if is_complete else "The rotation is not complete.")
    return 0 if is_complete else 1


def engine_methods(url: str, node: RpcNode) -> tuple[EngineMethods, Any]:
    """Return the methods of the node's consensus engine, and its answer to `EngineMethods.validators`."""
    reasons = []
    for methods in ENGINES:
        try:
            validators = node.ask(methods.validators, "latest")
            if validators:
                return methods, validators
        except CommandError as error:
            reasons.append(str(error))
    reason = reasons[0] if reasons else "it has none"
    raise CommandError(
        f"The node at {url} reports no validators: {reason}. Enable the API group QBFT, IBFT or CLIQUE on it."
    )


def _view(url: str, node: RpcNode, methods: EngineMethods) -> RotationView:
    with node.reading("validators and votes"):
        validators = _texts(node.ask(methods.validators, "latest"))
        head = int(node.ask("eth_blockNumber"), 16)
        first = max(1, head - _BLOCKS_PER_VALIDATOR * len(validators))
        found = node.ask(methods.metrics, hex(first), "latest") or []
        producers = {str(one["address"]).lower() for one in found if int(one["proposedBlockCount"], 16) > 0}
        votes = node.ask(methods.pending)
        pending = {str(address).lower(): bool(adds) for address, adds in votes.items()}
    return RotationView(url, frozenset(validators), pending, frozenset(producers))


def _texts(answer: Any) -> list[str]:
    return [str(address).lower() for address in answer]
