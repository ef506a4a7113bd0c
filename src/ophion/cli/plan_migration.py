"""`ophion operator plan-migration`: moves a Clique or IBFT 2.0 network to QBFT, step by step.

With the current genesis file the command checks the nodes, chooses the first QBFT block, writes the new genesis file
and prints instructions for each operator. With the new genesis file the command checks which nodes already use it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from math import ceil
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from ophion.chainspec.consensus_parameters import EngineKind
from ophion.chainspec.genesis import Genesis, parse_genesis
from ophion.chainspec.spec import ChainSpec
from ophion.cli.command import Command, CommandSession
from ophion.cli.input_output import parse_json, read_input
from ophion.cli.migration_status import KnownMigration, known_migration, migration_lines
from ophion.cli.node_client import RpcNode, read_token
from ophion.cli.untrusted_text import escape_untrusted
from ophion.cli.url_option import read_url
from ophion.consensus.bft.validator_set import quorum_of
from ophion.errors import CommandError, ConfigError, DecodeError
from ophion.node.node_key_file import write_text
from ophion.primitives.hexcodec import parse_data_lenient
from ophion.primitives.types import ADDRESS_LENGTH, Address
from ophion.runtime.blocking_json_rpc import NoAnswer
from ophion.runtime.clock import SystemClock
from ophion.runtime.options import Options, at_least, option, problems_of

_ANSWER_TIMEOUT_S: Final = 10.0
_MIN_BLOCKS: Final = 10
"""Minimum number of blocks between the plan and the first QBFT block."""
_MIN_FAULT_TOLERANT: Final = 4
_REQUEST_TIMEOUT_FACTOR: Final = 2


def _validator(text: str) -> str:
    try:
        return f"0x{parse_data_lenient(text, ADDRESS_LENGTH).hex()}"
    except DecodeError as error:
        raise ValueError(f"'{text}' is not an address") from error


class PlanOptions(Options):
    """Options: nodes and genesis files of `ophion operator plan-migration`."""

    genesis_file: Path = option("--genesis-file", help="The genesis file of the network: the current or the new one.")
    urls: tuple[str, ...] = option(
        "--rpc",
        default=(),
        metavar="URL",
        parse=read_url("http", "https"),
        help="JSON-RPC of every node of the network, separated by commas.",
    )
    token_file: Path | None = option(
        "--token-file", default=None, help="File with a token, for nodes with authentication."
    )
    target: Path = option("--to", default=Path("genesis-qbft.json"), help="File for the new genesis; must not exist.")
    start_block: int | None = option(
        "--start-block", default=None, check=at_least(1), help="First QBFT block. Otherwise --lead-time decides."
    )
    lead_time_s: int = option(
        "--lead-time",
        default=3600,
        check=at_least(1),
        metavar="SECONDS",
        help="Seconds until the first QBFT block: the time that the operators need.",
    )
    validators: tuple[str, ...] = option(
        "--validators",
        default=(),
        metavar="ADDRESS",
        parse=_validator,
        help="Validators from the first QBFT block on, separated by commas. Otherwise the current members.",
    )

    def problems(self) -> Iterator[str]:
        if not self.urls:
            yield "Missing required option: '--rpc=URL[,URL...]'"
        if len(set(self.validators)) < len(self.validators):
            yield "--validators names an address twice"


class PlannedNode(Struct, frozen=True):
    """One node and the values that it reports."""

    url: str
    client: str
    height: int
    genesis_hash: str
    migration: KnownMigration
    members: tuple[Address, ...] | None
    """Validators or signers that may produce the next block; None if the node does not report them."""


def plan_migration(options: PlanOptions, session: CommandSession) -> int:
    """Check the nodes, then write a plan or report the progress of the existing plan. Returns 1 if a node is
    not ready.
    """
    if problems := problems_of(options):
        raise ConfigError(problems)
    text = read_input(options.genesis_file, f"Unable to read the genesis file {options.genesis_file}")
    genesis = parse_genesis(text)
    spec = genesis.spec
    if spec.engine not in (EngineKind.CLIQUE, EngineKind.IBFT2):
        raise CommandError(
            f"{options.genesis_file} is of a network with {spec.engine.value}: only Clique and IBFT 2.0 move to QBFT"
        )
    nodes = _examined(options, spec)
    if spec.migration_block is not None:
        return _report(nodes, spec.migration_block)
    members = _members(nodes)
    head = max(node.height for node in nodes)
    first = _first_block(options, spec, head)
    _write(options, text, spec, first)
    for line in _instructions(options, genesis, nodes, members, head, first):
        print(line)
    return 0


def _examined(options: PlanOptions, spec: ChainSpec) -> list[PlannedNode]:
    """Query every node. Raises an error if a node does not answer or the genesis blocks differ."""
    token = read_token(options.token_file)
    nodes = [_examine(RpcNode(url, token, _ANSWER_TIMEOUT_S), url, spec.engine) for url in options.urls]
    if len({node.genesis_hash for node in nodes}) > 1:
        shown = "; ".join(f"{node.url} has {node.genesis_hash}" for node in nodes)
        raise CommandError(f"The nodes are of different networks: {shown}")
    for node in nodes:
        print(f"{node.url}: {node.client}, block {node.height}")
    return nodes


def _examine(node: RpcNode, url: str, engine: EngineKind) -> PlannedNode:
    try:
        chain_id = node.ask("eth_chainId")
        client = escape_untrusted(node.ask("web3_clientVersion"))
        height = int(str(node.ask("eth_blockNumber"))[:18], 16)
        first = node.ask("eth_getBlockByNumber", "0x0", False)
        genesis_hash = escape_untrusted(first["hash"]) if isinstance(first, dict) else str(chain_id)
        return PlannedNode(url, client, height, genesis_hash, known_migration(node), _reported_members(node, engine))
    except NoAnswer as error:
        raise CommandError(f"{url} does not answer: {error.why}. Start it, or leave it out of --rpc.") from error
    except (ValueError, LookupError, TypeError) as error:
        raise CommandError(f"{url}: its responses are not those of an Ethereum node") from error


def _reported_members(node: RpcNode, engine: EngineKind) -> tuple[Address, ...] | None:
    method = "clique_getSigners" if engine is EngineKind.CLIQUE else "ibft_getValidatorsByBlockNumber"
    try:
        found = node.ask(method, "latest")
    except NoAnswer:
        raise
    except CommandError:
        return None
    return tuple(parse_data_lenient(str(one), ADDRESS_LENGTH) for one in found) if isinstance(found, list) else None


def _members(nodes: Sequence[PlannedNode]) -> tuple[Address, ...]:
    found = {node.members for node in nodes if node.members is not None}
    if not found:
        raise CommandError("No node reports its members: enable the API group CLIQUE or IBFT (--rpc-http-api).")
    if len(found) > 1:
        raise CommandError("The nodes report different members: wait until all have the same head, then try again.")
    return found.pop()


def _first_block(options: PlanOptions, spec: ChainSpec, head: int) -> int:
    first = options.start_block
    if first is None:
        return head + max(_MIN_BLOCKS, ceil(options.lead_time_s / _period_s(spec)))
    if first < head + _MIN_BLOCKS:
        raise CommandError(
            f"--start-block {first} is too early: the head is block {head}, and the operators need time to restart"
            f" their nodes. Choose block {head + _MIN_BLOCKS} or later."
        )
    return first


def _period_s(spec: ChainSpec) -> float:
    if spec.clique is not None and spec.engine is EngineKind.CLIQUE:
        return float(spec.clique.period_s or 1)
    return float(spec.ibft2.block_period_s if spec.ibft2 is not None else 1)


def _write(options: PlanOptions, text: str, spec: ChainSpec, first: int) -> None:
    """Write the genesis file with the migration added. The genesis block stays the same."""
    values: dict[str, Any] = parse_json(text, f"{options.genesis_file} is not JSON")
    name = next(key for key in values if key.lower() == "config")
    config = dict(values[name])
    if any(key.lower() == "qbft" for key in config):
        raise CommandError(f"{options.genesis_file} already has config.qbft, without startBlock: remove it first")
    period = int(_period_s(spec))
    old = spec.ibft2
    config["qbft"] = {
        "blockperiodseconds": period,
        "epochlength": old.epoch_length if old is not None else 30_000,
        "requesttimeoutseconds": old.request_timeout_s if old is not None else _REQUEST_TIMEOUT_FACTOR * period,
        "startBlock": first,
    }
    if options.validators:
        transitions = dict(config.get("transitions") or {})
        transitions["qbft"] = [{"block": first, "validators": list(options.validators)}]
        config["transitions"] = transitions
    written = json.dumps({**values, name: config}, indent=2) + "\n"
    parse_genesis(written)
    if options.target.exists():
        raise CommandError(f"{options.target} exists already: name another file with --to")
    write_text(options.target, written)


def _instructions(
    options: PlanOptions,
    genesis: Genesis,
    nodes: Sequence[PlannedNode],
    members: Sequence[Address],
    head: int,
    first: int,
) -> Iterator[str]:
    """Yield the lines of the migration plan: what each operator does, and until when."""
    spec, now = genesis.spec, SystemClock().now()
    period_s = _period_s(spec)

    def when(block: int) -> str:
        at = datetime.fromtimestamp(now + (block - head) * period_s, UTC)
        return f"block {block} (about {at:%Y-%m-%d %H:%M} UTC)"

    chosen = options.validators or tuple(f"0x{member.hex()}" for member in members)
    needed, left = quorum_of(len(chosen)), first - head
    yield ""
    yield f"The network moves from {spec.engine.value} to QBFT at {when(first)}. New genesis file: {options.target}"
    yield f"Validators from then on ({len(chosen)}, of which {needed} must be online): {', '.join(chosen)}"
    if len(chosen) < _MIN_FAULT_TOLERANT:
        yield f"Warning: {len(chosen)} validators tolerate no faulty one; use at least {_MIN_FAULT_TOLERANT}."
    others = [node.url for node in nodes if not node.client.lower().startswith(("ophion", "besu"))]
    if spec.engine is EngineKind.CLIQUE:
        others = [node.url for node in nodes if not node.client.lower().startswith("ophion")]
    if others:
        yield f"Warning: these nodes run a client without this migration, replace them first: {', '.join(others)}"
    yield ""
    yield f"1. Now: send {options.target} to the operator of every node, and compare its SHA-256."
    yield f"2. Until {when(first - max(1, left // 4))}: each operator replaces the file of --genesis-file and restarts"
    yield "   the node, one node at a time; the next one only when `ophion doctor` says that blocks are produced."
    yield "3. Then check that every node has the new rules:"
    yield f"   ophion operator plan-migration --genesis-file={options.target} --rpc={','.join(options.urls)}"
    yield f"4. If a node is missing at {when(first - max(1, left // 8))}: set a later startBlock in the file and go"
    yield "   back to step 1. A node with the old file stops by itself before it signs under the old rules."
    yield f"5. At {when(first)}: watch `ophion doctor`. The chain goes on within three periods ({3 * period_s:g} s)."


def _report(nodes: Sequence[PlannedNode], first: int) -> int:
    """Print which nodes already use the genesis file with the migration. Returns the exit code."""
    for line in migration_lines([(node.url, node.height, node.migration) for node in nodes]):
        print(line)
    waiting = [node.url for node in nodes if node.migration.block != first]
    if waiting:
        print(f"{len(nodes) - len(waiting)} of {len(nodes)} nodes have QBFT from block {first} on.")
        return 1
    print(f"All {len(nodes)} nodes have QBFT from block {first} on.")
    return 0


PLAN_COMMAND: Final = Command(
    "plan-migration",
    "Plan the move of a running Clique or IBFT 2.0 network to QBFT, and check how far it has come.",
    plan_migration,
    PlanOptions,
    examples=(
        "ophion operator plan-migration --genesis-file=genesis.json --rpc=http://127.0.0.1:8545,http://127.0.0.1:8546",
    ),
)
