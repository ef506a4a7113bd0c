"""Common parts of transport tests: a transport without a socket, and a small method table."""

from __future__ import annotations

import asyncio
import math
from typing import Any

from ophion.native.executor import LatestRead
from ophion.primitives.types import BlockTag
from ophion.rpc.dispatch.dispatcher import Dispatcher
from ophion.rpc.dispatch.limits import DispatchLimits
from ophion.rpc.schema.registry import HTTP, Caller, MethodTable, Registry, method
from ophion.rpc.schema.wire_types import AddressParam, BlockParam, Boolean, Data, Quantity, Text, TextParam
from ophion.rpc.transport.shared_resources import SharedResources
from ophion.runtime.fair_scheduler import FairScheduler


class MemoryTransport(asyncio.Transport):
    """A transport without a socket that records output and calls."""

    def __init__(self, is_encrypted: bool = False) -> None:
        super().__init__({"sslcontext": "any"} if is_encrypted else {})
        self.written = b""
        self.is_reading_paused = False
        self.is_closed = False
        self.is_aborted = False
        self.has_eof = False
        self.unread = 0

    def write(self, data: Any) -> None:
        self.written += bytes(data)

    def writelines(self, list_of_data: Any) -> None:
        self.written += b"".join(list_of_data)

    def write_eof(self) -> None:
        self.has_eof = True

    def can_write_eof(self) -> bool:
        return True

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_aborted = self.is_closed = True

    def pause_reading(self) -> None:
        self.is_reading_paused = True

    def resume_reading(self) -> None:
        self.is_reading_paused = False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Ignore limits; tests decide when the buffer is full."""

    def get_write_buffer_size(self) -> int:
        return self.unread

    def take(self) -> bytes:
        """Return the output since the last call."""
        written, self.written = self.written, b""
        return written


def patient(slice_s: float = math.inf) -> SharedResources:
    """Return shared resources without time limits, so that requests are answered at once even if the test does not run
    the loop. With a `slice_s` of 0, each time slice processes one piece.
    """
    return SharedResources(scheduler=FairScheduler(turn_s=math.inf, slice_s=slice_s))


class Context:
    """The services of the methods below."""

    def __init__(self) -> None:
        self.head = 0x20
        self.executed: list[str] = []
        self.gate: asyncio.Future[int] | None = None
        self.has_clique = False

    def provides(self, service: str) -> bool:
        return service != "clique" or self.has_clique

    def latest_read(self, name: str) -> LatestRead:
        raise AssertionError(f"no method here asks for {name}")


@method("eth_blockNumber")
def block_number(ctx: Context) -> Quantity:
    """Number of the newest block."""
    ctx.executed.append("eth_blockNumber")
    return ctx.head


@method("eth_getBalance")
def get_balance(ctx: Context, address: AddressParam, block: BlockParam = BlockTag.LATEST) -> Quantity | None:
    """Balance of an account."""
    return None if block is BlockTag.EARLIEST else int.from_bytes(address, "big")


@method("eth_getCode")
async def get_code(ctx: Context, address: AddressParam) -> Data:
    """A coroutine that does not wait."""
    return address


@method("eth_wait")
async def wait(ctx: Context) -> Quantity:
    """A coroutine that waits for the test."""
    ctx.gate = asyncio.get_running_loop().create_future()
    return await ctx.gate + await asyncio.shield(asyncio.sleep(0, 1))


@method("eth_fail")
def fail(ctx: Context) -> Quantity:
    """A handler with a bug."""
    raise ZeroDivisionError


class Panic(BaseException):
    """A panic of the extension, in the form that Python sees: not an `Exception`."""


@method("eth_panic")
def panic(ctx: Context) -> Quantity:
    """A handler in which the extension panics."""
    raise Panic("index out of bounds")


@method("eth_panicLater")
async def panic_later(ctx: Context) -> Quantity:
    """A handler in which the extension panics after a wait."""
    await asyncio.sleep(0)
    raise Panic("index out of bounds")


@method("eth_large")
def large(ctx: Context) -> Text:
    """A result too large to be copied."""
    return "x" * 200_000


@method("web3_sha3", exact_count=True)
def sha3(ctx: Context, data: TextParam) -> Text:
    """A method with exactly one parameter."""
    return data


@method("admin_peers")
def peers(ctx: Context) -> Boolean:
    """A method of a group that is not enabled."""
    return True


@method("clique_propose", needs={"clique"})
def propose(ctx: Context) -> Boolean:
    """A method that needs a service."""
    return True


@method("eth_tell", transports={"ws"})
def tell(ctx: Context, caller: Caller, text: TextParam) -> Boolean:
    """A method that sends a notification to its caller."""
    caller.notify(text.encode())
    return True


METHODS = (block_number, get_balance, get_code, wait, fail, panic, panic_later, large, sha3, peers, propose, tell)


def registry() -> Registry:
    return Registry(getattr(one, "__rpc__") for one in METHODS)  # noqa: B009


def table(context: Context, transport: str = HTTP) -> MethodTable:
    return registry().bind(context, {"eth", "web3", "clique"}, transport)


def dispatcher(context: Context, loop: asyncio.AbstractEventLoop, transport: str = HTTP, **limits: Any) -> Dispatcher:
    return Dispatcher(table(context, transport), loop, DispatchLimits(**limits))
