"""`ophion doctor`: ask the nodes of a network how they are, and say in plain words whether it can make blocks."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from ophion.cli.command import Command, Session
from ophion.cli.node_client import NoAnswer, RpcNode, read_token, read_url
from ophion.errors import CommandError, ConfigError
from ophion.runtime.clock import SystemClock
from ophion.runtime.options import Options, at_least, option, problems_of

_ANSWER_LIMIT_S: Final = 5.0
_PORT: Final = 8545
_CLOCK_OFF_S: Final = 1.0
_STATUS: Final = ("qbft_getStatus", "ibft_getStatus")


class DoctorOptions(Options):
    """Options."""

    urls: tuple[str, ...] = option(
        "--rpc",
        default=(),
        metavar="URL",
        parse=read_url("http", "https"),
        help="JSON-RPC of the nodes to ask, as many as there are.",
    )
    token_file: Path | None = option(
        "--token-file", default=None, help="File with a token, where the nodes ask for one."
    )
    wait_s: float = option(
        "--wait", default=4.0, check=at_least(0), metavar="SECONDS", help="How long to wait for a new block."
    )

    def problems(self) -> Iterator[str]:
        if not self.urls:
            yield "Missing required option: '--rpc=URL[,URL...]'"


@dataclass(slots=True)
class CheckedNode:
    """One node, and what it answered."""

    url: str
    client: str = ""
    height: int = -1
    head: str = ""
    age_s: float = 0.0
    peers: int | None = 0
    """None where the node does not tell."""
    is_syncing: bool = False
    status: dict[str, Any] | None = None
    """What consensus waits for; None where the node does not tell."""
    problem: str | None = None
    """Why there is no answer."""
    grown: int = field(default=0)
    """Blocks while we waited."""


def examine(url: str, now: float, token: str | None = None) -> CheckedNode:
    """Ask one node everything."""
    patient = CheckedNode(url)
    parts = urlsplit(url)
    place = parts if parts.port else parts._replace(netloc=f"{parts.netloc}:{_PORT}")
    node = RpcNode(place.geturl(), token, _ANSWER_LIMIT_S)
    try:
        patient.client = str(_told(node, "web3_clientVersion") or "version unknown")
        block = node.ask("eth_getBlockByNumber", "latest", False)
        patient.height, patient.head = int(block["number"], 16), str(block["hash"])
        patient.age_s = now - int(block["timestamp"], 16)
        peers = _told(node, "net_peerCount")
        patient.peers = None if peers is None else int(peers, 16)
        patient.is_syncing = node.ask("eth_syncing") is not False
    except NoAnswer as error:
        patient.problem = error.why
        return patient
    except CommandError as error:
        patient.problem = str(error)
        return patient
    except (ValueError, KeyError, TypeError):
        patient.problem = "its answers are not those of an Ethereum node"
        return patient
    for method in _STATUS:
        try:
            patient.status = node.ask(method)
            break
        except CommandError:
            continue
    return patient


def _told(node: RpcNode, method: str) -> Any:
    """The answer; None where the group of the method is off."""
    try:
        return node.ask(method)
    except NoAnswer:
        raise
    except CommandError:
        return None


def verdict(patients: Sequence[CheckedNode]) -> tuple[bool, list[str]]:
    """Whether the network makes progress, and what to say about it."""
    lines: list[str] = []
    there = [patient for patient in patients if patient.problem is None]
    lines += [f"{patient.url} does not answer: {patient.problem}" for patient in patients if patient.problem]
    if not there:
        return False, [*lines, "Nobody answers. Start the nodes, or check the addresses and --rpc-http-enabled."]
    heads = {patient.height: {other.head for other in there if other.height == patient.height} for patient in there}
    forked = [height for height, hashes in heads.items() if len(hashes) > 1]
    if forked:
        lines.append(
            f"Nodes have different blocks {forked[0]}: they are of different networks, or the chain has forked."
        )
    for patient in there:
        if patient.is_syncing:
            lines.append(f"{patient.url} is synchronising and takes no part until it has caught up.")
        elif patient.peers == 0 and len(patients) > 1:
            lines.append(f"{patient.url} has no peers: check static-nodes.json, --bootnodes and firewalls.")
    lines += _about_validators(there)
    if any(patient.grown for patient in there) and not forked:
        return True, [*lines, "The network makes blocks."]
    newest = min(there, key=lambda patient: patient.age_s)
    latest = f"the latest is number {newest.height}, {newest.age_s:.0f} s old" if newest.height else "there is none yet"
    lines.append(f"No new block came; {latest}.")
    return False, [*lines, *_what_to_do(there)]


def _about_validators(there: Sequence[CheckedNode]) -> Iterator[str]:
    """What the nodes say about the validators, each thing once."""
    said: set[str] = set()
    for patient in there:
        for member in (patient.status or {}).get("members") or ():
            address, lead = member["address"], member.get("clockAheadSeconds")
            if lead is not None and abs(lead) > _CLOCK_OFF_S:
                word = "ahead of" if lead > 0 else "behind"
                line = f"The clock of validator {address} is about {abs(lead):.0f} s {word} others: set it right."
            elif member.get("isPassedOver"):
                line = f"Validator {address} is silent and passed over until it is heard again."
            else:
                continue
            if line not in said:
                said.add(line)
                yield line


def _what_to_do(there: Sequence[CheckedNode]) -> Iterator[str]:
    """Where nothing happens: what each validator waits for."""
    statuses = [(patient, patient.status) for patient in there if patient.status is not None]
    if not statuses:
        yield (
            "These nodes do not tell what consensus waits for: on networks with IBFT 2.0 or QBFT enable that API group"
            " (--rpc-http-api). A development node may make blocks for transactions alone."
        )
        return
    for patient, status in statuses:
        for sentence in status.get("explanation") or ():
            yield f"{patient.url}: {sentence}"
    _, status = statuses[0]
    missing = set(status["validators"])
    for _, each in statuses:
        if each.get("disconnected") is not None:
            missing -= set(each["validators"]) - set(each["disconnected"])
    present = len(status["validators"]) - len(missing)
    if present < status["quorum"]:
        yield (
            f"{status['quorum']} of {len(status['validators'])} validators are needed and {present} can be reached. "
            f"Start or connect at least {status['quorum'] - present} of: {', '.join(sorted(missing))}."
        )
    else:
        yield "Enough validators are connected: look again after a request time-out."


def doctor(options: DoctorOptions, session: Session) -> int:
    """Ask everybody twice; 0 when the network makes blocks."""
    if problems := problems_of(options):
        raise ConfigError(problems)
    clock, token = SystemClock(), read_token(options.token_file)
    before = {url: examine(url, clock.now(), token).height for url in options.urls}
    deadline = clock.monotonic() + options.wait_s
    while True:
        patients = [examine(url, clock.now(), token) for url in options.urls]
        for patient in patients:
            patient.grown = max(0, patient.height - before[patient.url]) if before[patient.url] >= 0 else 0
        if any(patient.grown for patient in patients) or clock.monotonic() >= deadline:
            break
        time.sleep(0.2)
    for patient in patients:
        if patient.problem is None:
            phase = "" if patient.status is None else f", {patient.status['phase']}"
            peers = "peers unknown" if patient.peers is None else f"{patient.peers} peer{'s' * (patient.peers != 1)}"
            print(f"{patient.url}: {patient.client}, block {patient.height}, {peers}{phase}")
    is_well, lines = verdict(patients)
    print("\n".join(lines))
    return 0 if is_well else 1


COMMANDS = (
    Command(
        "doctor",
        "Ask nodes how they are and say whether their network can make blocks; exit code 1 when it cannot.",
        doctor,
        DoctorOptions,
        examples=("ophion doctor --rpc=http://127.0.0.1:8545,http://127.0.0.1:8546",),
    ),
)
