"""`ophion doctor`: checks the nodes of a network and reports whether the network produces blocks."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from ophion.cli.command import Command, CommandSession
from ophion.cli.consensus_status import ReportedConsensus, read_consensus_status
from ophion.cli.migration_status import NOT_REPORTED, KnownMigration, known_migration, migration_lines
from ophion.cli.node_client import RpcNode, read_token
from ophion.cli.untrusted_text import escape_untrusted
from ophion.cli.url_option import read_url
from ophion.errors import CommandError, ConfigError
from ophion.runtime.blocking_json_rpc import NoAnswer
from ophion.runtime.clock import SystemClock
from ophion.runtime.options import Options, at_least, option, problems_of

_ANSWER_TIMEOUT_S: Final = 5.0
_PORT: Final = 8545
_MAX_CLOCK_OFFSET_S: Final = 1.0
_MAX_QUANTITY_CHARS: Final = len("0x") + 16
_STATUS: Final = ("qbft_getStatus", "ibft_getStatus")


class DoctorOptions(Options):
    """Options: the nodes that `ophion doctor` checks."""

    urls: tuple[str, ...] = option(
        "--rpc",
        default=(),
        metavar="URL",
        parse=read_url("http", "https"),
        help="JSON-RPC of the nodes to check; separate several by commas.",
    )
    token_file: Path | None = option(
        "--token-file", default=None, help="File with a token, for nodes with authentication."
    )
    wait_s: float = option(
        "--wait", default=4.0, check=at_least(0), metavar="SECONDS", help="Seconds to wait for a new block."
    )

    def problems(self) -> Iterator[str]:
        if not self.urls:
            yield "Missing required option: '--rpc=URL[,URL...]'"


@dataclass(slots=True)
class CheckedNode:
    """One node and its responses. Every text in it is safe to print."""

    url: str
    client: str = ""
    height: int = -1
    head: str = ""
    age_s: float = 0.0
    peers: int | None = 0
    """Number of peers; None if the node does not report the number."""
    is_syncing: bool = False
    status: ReportedConsensus | None = None
    """Consensus status; None if the node does not report a status."""
    migration: KnownMigration = NOT_REPORTED
    """The migration to QBFT in the node's genesis file."""
    problem: str | None = None
    """The reason why the node cannot be used, or None."""
    new_blocks: int = 0
    """Number of blocks since the first check."""


def examine(url: str, now: float, token: str | None = None) -> CheckedNode:
    """Send all queries to one node. Accepts responses of any shape."""
    checked = CheckedNode(url)
    parts = urlsplit(url)
    with_port = parts if parts.port else parts._replace(netloc=f"{parts.netloc}:{_PORT}")
    node = RpcNode(with_port.geturl(), token, _ANSWER_TIMEOUT_S)
    try:
        checked.client = escape_untrusted(_ask_optional(node, "web3_clientVersion") or "version unknown")
        block = node.ask("eth_getBlockByNumber", "latest", False)
        checked.height, checked.head = _quantity(block["number"]), escape_untrusted(block["hash"])
        checked.age_s = now - _quantity(block["timestamp"])
        peers = _ask_optional(node, "net_peerCount")
        checked.peers = None if peers is None else _quantity(peers)
        checked.is_syncing = node.ask("eth_syncing") is not False
    except NoAnswer as error:
        checked.problem = escape_untrusted(error.why)
        return checked
    except CommandError as error:
        checked.problem = escape_untrusted(error)
        return checked
    except (ValueError, LookupError, TypeError):
        checked.problem = "its responses are not those of an Ethereum node"
        return checked
    checked.migration = known_migration(node)
    for method in _STATUS:
        try:
            checked.status = read_consensus_status(node.ask(method))
            break
        except CommandError:
            continue
    return checked


def _quantity(answer: Any) -> int:
    """Read a hex quantity of at most 64 bits."""
    if not isinstance(answer, str) or len(answer) > _MAX_QUANTITY_CHARS or not answer.startswith("0x"):
        raise ValueError("not a quantity")
    return int(answer, 16)


def _ask_optional(node: RpcNode, method: str) -> Any:
    """Return the result of a method. None if the node replies with an error, for example because the API group is
    disabled.
    """
    try:
        return node.ask(method)
    except CommandError as error:
        if isinstance(error, NoAnswer) and error.status is None:
            raise
        return None


def verdict(nodes: Sequence[CheckedNode]) -> tuple[bool, list[str]]:
    """Return whether the network makes progress, and the lines to print."""
    lines: list[str] = []
    online = [node for node in nodes if node.problem is None]
    lines += [f"{node.url} does not answer: {node.problem}" for node in nodes if node.problem]
    if not online:
        return False, [*lines, "No node answers. Start the nodes, or check the addresses and --rpc-http-enabled."]
    heads = {node.height: {other.head for other in online if other.height == node.height} for node in online}
    forked = [height for height, hashes in heads.items() if len(hashes) > 1]
    if forked:
        lines.append(
            f"Nodes have different blocks {forked[0]}: they are of different networks, or the chain has forked."
        )
    for node in online:
        if node.is_syncing:
            lines.append(f"{node.url} is synchronising and does not take part until it has caught up.")
        elif node.peers == 0 and len(nodes) > 1:
            lines.append(f"{node.url} has no peers: check static-nodes.json, --bootnodes and firewalls.")
    lines += migration_lines([(node.url, node.height, node.migration) for node in online])
    lines += _about_validators(online)
    if any(node.new_blocks for node in online) and not forked:
        return True, [*lines, "The network is producing blocks."]
    newest = min(online, key=lambda node: node.age_s)
    latest = f"the latest is number {newest.height}, {newest.age_s:.0f} s old" if newest.height else "there is none yet"
    lines.append(f"No new block arrived; {latest}.")
    return False, [*lines, *_advice(online)]


def _about_validators(online: Sequence[CheckedNode]) -> Iterator[str]:
    """Yield lines about validators from the reports of all nodes, without duplicates."""
    shown: set[str] = set()
    for node in online:
        for member in node.status.members if node.status is not None else ():
            lead = member.clock_ahead_s
            if lead is not None and abs(lead) > _MAX_CLOCK_OFFSET_S:
                word = "ahead of" if lead > 0 else "behind"
                line = (
                    f"The clock of validator {member.address} is about {abs(lead):.0f} s {word} others: set it right."
                )
            elif member.is_passed_over:
                line = f"Validator {member.address} is offline and skipped until it sends messages again."
            else:
                continue
            if line not in shown:
                shown.add(line)
                yield line


def _advice(online: Sequence[CheckedNode]) -> Iterator[str]:
    """Yield lines for the operator of a stalled network: what each validator waits for, and advice."""
    statuses = [(node, node.status) for node in online if node.status is not None]
    if not statuses:
        yield (
            "These nodes do not report what consensus waits for: on networks with IBFT 2.0 or QBFT enable that API"
            " group (--rpc-http-api). A development node may produce blocks only for transactions."
        )
        return
    for node, status in statuses:
        for sentence in status.explanation:
            yield f"{node.url}: {sentence}"
    _, first = statuses[0]
    missing = set(first.validators)
    for _, status in statuses:
        if status.disconnected is not None:
            missing -= set(status.validators) - status.disconnected
    present = len(first.validators) - len(missing)
    if present < first.quorum:
        yield (
            f"{first.quorum} of {len(first.validators)} validators are needed and {present} can be reached. "
            f"Start or connect at least {first.quorum - present} of: {', '.join(sorted(missing))}."
        )
    else:
        yield "Enough validators are connected: check again after a request timeout."


def doctor(options: DoctorOptions, session: CommandSession) -> int:
    """Check every node twice. Returns 0 if the network produces blocks."""
    if problems := problems_of(options):
        raise ConfigError(problems)
    clock, token = SystemClock(), read_token(options.token_file)
    before = {url: examine(url, clock.now(), token).height for url in options.urls}
    deadline = clock.monotonic() + options.wait_s
    while True:
        nodes = [examine(url, clock.now(), token) for url in options.urls]
        for node in nodes:
            node.new_blocks = max(0, node.height - before[node.url]) if before[node.url] >= 0 else 0
        if any(node.new_blocks for node in nodes) or clock.monotonic() >= deadline:
            break
        time.sleep(0.2)
    for node in nodes:
        if node.problem is None:
            phase = "" if node.status is None else f", {node.status.phase}"
            peers = "peers unknown" if node.peers is None else f"{node.peers} peer{'s' * (node.peers != 1)}"
            print(f"{node.url}: {node.client}, block {node.height}, {peers}{phase}")
    is_well, lines = verdict(nodes)
    print("\n".join(lines))
    return 0 if is_well else 1


COMMANDS = (
    Command(
        "doctor",
        "Check nodes and report whether their network produces blocks. Exit code 1 if it does not.",
        doctor,
        DoctorOptions,
        examples=("ophion doctor --rpc=http://127.0.0.1:8545,http://127.0.0.1:8546",),
    ),
)
