"""`ophion bench`: finds the highest steady transaction rate of a network and its bottleneck."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import orjson

from ophion.bench.load_step import LoadGenerator, LoadShape, LoadStep
from ophion.bench.report import MeasuredRun, as_html, as_json, summary
from ophion.bench.search import RateSearch, SearchResult
from ophion.bench.sender_accounts import Senders
from ophion.bench.verdict import is_sustained, percentile
from ophion.chainspec.dev_network import ORIGINAL_ACCOUNTS
from ophion.cli.command import Command, CommandSession
from ophion.cli.node_client import read_token
from ophion.cli.url_option import read_url
from ophion.errors import CommandError
from ophion.native.crypto import PrivateKey
from ophion.node.node_key_file import load_key
from ophion.primitives.hexcodec import data
from ophion.runtime.clock import SystemClock, SystemEntropy
from ophion.runtime.json_rpc_client import JsonRpcConnection, JsonRpcEndpoint
from ophion.runtime.options import Options, at_least, option

_DRAIN_S: Final = 20.0


class BenchOptions(Options):
    """Options: the node, time limit and report of `ophion bench`."""

    url: str = option(
        "--rpc", metavar="URL", parse=read_url("http", "https"), help="JSON-RPC of a node of the network."
    )
    key_file: Path | None = option(
        "--key-file",
        default=None,
        help="Key of an account that pays, where transactions cost something."
        " (default: that of a published test account, which has funds on networks of the quickstart and of `dev`)",
    )
    token_file: Path | None = option("--token-file", default=None, help="File with the token that the node requires.")
    step_s: float = option(
        "--step-seconds", default=5.0, check=at_least(1), metavar="SECONDS", help="Seconds to try each rate."
    )
    budget_s: float = option(
        "--search-seconds",
        default=120.0,
        check=at_least(1),
        metavar="SECONDS",
        help="Time limit of the search in seconds; the best rate is still confirmed afterwards.",
    )
    most: int | None = option(
        "--max-rate", default=None, check=at_least(1), help="Maximum rate to try, in transactions per second."
    )
    target: Path | None = option(
        "--to", default=None, metavar="DIRECTORY", help="Write report.json and report.html into this directory."
    )

    def problems(self) -> Iterator[str]:
        for file in (self.key_file, self.token_file):
            if file is not None and not file.is_file():
                yield f"There is no file {file}."


def bench(options: BenchOptions, session: CommandSession) -> int:
    """Search for the highest rate, print the summary and write the report."""
    if options.target is not None:
        _expect_directory(options.target)
    key = None if options.key_file is None else load_key(options.key_file)
    found, subject = asyncio.run(_measure(options, key, read_token(options.token_file)))
    print(summary(found, subject))
    if options.target is not None:
        _write(options.target / "report.json", orjson.dumps(as_json(found, subject), option=orjson.OPT_INDENT_2))
        _write(options.target / "report.html", as_html(found, subject).encode())
        print(f"\n{options.target / 'report.html'}")
    return 0 if found.best is not None else 1


async def _measure(
    options: BenchOptions, key: PrivateKey | None, token: str | None
) -> tuple[SearchResult, MeasuredRun]:
    clock = SystemClock()
    endpoint = JsonRpcEndpoint(options.url, token)
    node = await endpoint.connect()
    # if the node does not answer, the error of this first call explains why
    chain_id = int(await node.call("eth_chainId"), 16)
    subject = MeasuredRun(
        options.url,
        await _client(node),
        chain_id,
        time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(clock.now())),
    )
    senders = await Senders.make(node, key or await _published(node), SystemEntropy(), clock)
    load = LoadGenerator(endpoint, senders, clock)

    async def run(rate: float, seconds: float, shape: LoadShape) -> LoadStep:
        step = await load.run(rate, seconds, shape, _DRAIN_S)
        _show(step)
        return step

    try:
        return await RateSearch(run, clock, options.step_s, options.budget_s, options.most).find(), subject
    finally:
        await load.close()
        await node.close()


async def _client(node: JsonRpcConnection) -> str:
    """Return the client version of the node."""
    try:
        return str(await node.call("web3_clientVersion"))
    except CommandError:  # the node does not serve web3_clientVersion if its API group WEB3 is off
        return "a node of unknown version"


async def _published(node: JsonRpcConnection) -> PrivateKey | None:
    """Return the private key of a funded public test account, or None if the network has no such account."""
    account = ORIGINAL_ACCOUNTS[1]
    balance = int(await node.call("eth_getBalance", data(account.address), "latest"), 16)
    return PrivateKey(account.private_key) if balance else None


def _show(step: LoadStep) -> None:
    """Print a line about a finished load step."""
    median = percentile(step.mined_s, 0.5)
    waited = "nothing mined" if median is None else f"mined after {median:.2f} s"
    verdict = "kept up" if is_sustained(step) else "too much"
    print(f"{step.rate:>8,.0f} tx/s, {step.shape}: {verdict}, {waited}", file=sys.stderr, flush=True)


def _expect_directory(target: Path) -> None:
    """Raise an error before the search starts if the folder of the report does not exist."""
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(f"The report cannot be written to {target}: {error.strerror}") from error


def _write(file: Path, content: bytes) -> None:
    try:
        file.write_bytes(content)
    except OSError as error:
        raise CommandError(f"The report cannot be written to {file}: {error.strerror}") from error


COMMANDS = (
    Command(
        "bench",
        "Find the highest transaction rate that a network sustains, and its bottleneck.",
        bench,
        BenchOptions,
        examples=(
            "ophion bench --rpc=http://127.0.0.1:8545 --to=report",
            "ophion bench --rpc=http://127.0.0.1:8545 --key-file=rich.key --max-rate=1000",
        ),
    ),
)
