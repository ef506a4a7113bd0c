"""Attacks with valid requests that cost much."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json

from tests.abuse.target import (
    Target,
    answer,
    ask,
    call,
    expect,
    make_blocks,
    make_contract,
    opened,
    post,
    request,
    send,
    wait_in_pool,
)

ENDLESS = "0x5b600056"
"""Code that jumps to its own beginning."""
NOBODY = "0x" + "11" * 20


async def at_once(target: Target, body: bytes, connections: int) -> None:
    """Send the same request on many connections at the same time. Each request must be answered or refused."""

    async def one() -> None:
        with contextlib.suppress(OSError):
            status, text = await post(target.http, body)
            expect(status in (200, 400, 408, 413, 503, 0), f"status {status}: {text[:100]!r}")

    await asyncio.gather(*(one() for _ in range(connections)))


async def endless_calls(target: Target) -> None:
    """Attack with `eth_call` in an endless loop on 8 connections."""
    calls = [asyncio.create_task(post(target.http, call("eth_call", {"data": ENDLESS}, "latest"))) for _ in range(8)]
    for status, body in await asyncio.gather(*calls):
        expect(status in (200, 408) and "error" in json.loads(body), f"status {status}: {body[:100]!r}")


async def unknown_functions(target: Target) -> None:
    """Attack with 1,500 connections that call endless functions, a new function each time."""
    contract = await make_contract(target, bytes.fromhex(ENDLESS[2:]))
    if contract is None:
        return
    numbers = itertools.count()

    async def one() -> None:
        with contextlib.suppress(OSError):
            async with opened(target.http) as (reader, writer):
                for name in ("eth_call", "eth_estimateGas") * target.count(4, 1):
                    wanted = {"to": contract, "data": f"0x{next(numbers):08x}", "gas": hex(5_000_000)}
                    await send(writer, request(call(name, wanted, "latest"), path=target.http.path))
                    status, text = await answer(reader)
                    expect(status in (200, 408, 503, 0), f"status {status}: {text[:100]!r}")

    await asyncio.gather(*(one() for _ in range(target.count(1500, 8))))


async def abandoned_calls(target: Target) -> None:
    """Attack with clients that send the most expensive requests and disconnect."""
    for _ in range(target.count(500, 20)):
        async with opened(target.http) as (_, writer):
            await send(writer, request(call("eth_call", {"data": ENDLESS}, "latest"), path=target.http.path))


async def unread_traces(target: Target) -> None:
    """Attack with a long answer followed by a trace of gigabytes, on connections that do not read."""
    wide = {NOBODY: {"code": "0x623d09006000f3"}}
    asked = call("eth_call", {"to": NOBODY, "gas": "0x2faf080"}, "latest", wide)
    traced = call("trace_call", {"data": ENDLESS, "gas": "0x2faf080"}, ["vmTrace"], "latest")
    async with contextlib.AsyncExitStack() as held:
        for _ in range(target.count(16, 4)):
            _, writer = await held.enter_async_context(opened(target.http))
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            writer.write(request(asked, path=target.http.path) + request(traced, path=target.http.path))
        await asyncio.sleep(3)


async def endless_ranges(target: Target) -> None:
    """Attack with ranges of 2^63 blocks."""
    far, near = hex(2**63 - 1), "0x0"
    for name, *params in (
        ("eth_getLogs", {"fromBlock": near, "toBlock": far}),
        ("eth_getLogs", {"fromBlock": near, "toBlock": "latest"}),
        ("eth_feeHistory", far, "latest", []),
        ("eth_getBlockByNumber", far, True),
        ("trace_filter", {"fromBlock": near, "toBlock": far}),
    ):
        expect(await ask(target, name, *params) is not None, f"{name} was not answered")


async def batches_of_blocks(target: Target) -> None:
    """Attack with 200 connections that request batches of 1,024 blocks of 60 KB and more."""
    await make_blocks(target, target.count(20, 4))
    body = b"[" + b",".join([call("eth_getBlockByNumber", "latest", True)] * 1024) + b"]"
    await at_once(target, body, target.count(200, 8))


async def proofs(target: Target) -> None:
    """Attack with 50 connections that request proofs of 20,000 slots each."""
    keys = [f"0x{number:064x}" for number in range(target.count(20_000, 2000))]
    await at_once(target, call("eth_getProof", NOBODY, keys, "latest"), target.count(50, 8))


async def simulations(target: Target) -> None:
    """Attack with 50 connections that request simulations of thousands of calls and overrides."""
    calls = [{"from": NOBODY, "to": f"0x{number:040x}", "data": "0x" + "00" * 64} for number in range(1000)]
    overrides = {f"0x{number:040x}": {"balance": "0x1", "code": "0x00"} for number in range(1000)}
    blocks = [{"calls": calls, "stateOverrides": overrides}] * target.count(10, 2)
    await at_once(target, call("eth_simulateV1", {"blockStateCalls": blocks}, "latest"), target.count(50, 8))


async def many_filters(target: Target) -> None:
    """Attack with 1,000,000 filters."""
    member = b'{"id":1,"method":"eth_newBlockFilter","params":[]}'
    batch = b"[" + b",".join([member] * 1000) + b"]"
    refused = 0
    async with opened(target.http) as (reader, writer):
        for _ in range(target.count(1000, 12)):
            writer.write(request(batch, path=target.http.path))
            status, body = await answer(reader)
            expect(status == 200, f"status {status}")
            refused += body.count(b"-32005")
    expect(refused > 0, "filters without limit")


async def wide_filters(target: Target) -> None:
    """Attack with 200 log filters, each with 200,000 topics, from a client that disconnects."""
    topics = [f"0x{number:064x}" for number in range(target.count(200_000, 4000))]
    body = call("eth_newFilter", {"topics": [topics]})
    for _ in range(target.count(200, 12)):
        await post(target.http, body)


async def full_pool(target: Target) -> None:
    """Attack with 300 MB of transactions with a nonce gap, and 50 connections that list all of them."""
    await wait_in_pool(target, target.count(300, 20))
    await at_once(target, call("eth_pendingTransactions"), target.count(50, 4))
    # replace the large transactions by small transactions, to show that the node frees the memory of the large
    # transactions
    await wait_in_pool(target, 80, b"", 2)


async def dear_documents(target: Target) -> None:
    """Attack with 200 connections that send one GraphQL document of 8 KB after the other. The event loop answers all
    documents.
    """
    place = target.graphql
    if place is None:
        return
    fields = "number hash stateRoot receiptsRoot transactionsRoot extraData gasUsed transactionCount"
    document = "{" + "".join(f"a{number}:block{{{fields}}}" for number in range(80)) + "}"
    body = json.dumps({"query": document}).encode()
    expect(len(body) < 8 * 1024, "the document is read on the spot")
    asked = request(body, path=b"/graphql")

    async def one() -> None:
        with contextlib.suppress(OSError):
            async with opened(place) as (reader, writer):
                for _ in range(target.count(100, 3)):
                    await send(writer, asked)
                    status, text = await answer(reader)
                    expect(status in (200, 503, 0), f"status {status}: {text[:100]!r}")

    await asyncio.gather(*(one() for _ in range(target.count(200, 8))))


ATTACKS = (
    endless_calls,
    unknown_functions,
    abandoned_calls,
    unread_traces,
    endless_ranges,
    batches_of_blocks,
    proofs,
    simulations,
    many_filters,
    wide_filters,
    full_pool,
    dear_documents,
)
