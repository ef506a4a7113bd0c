"""Tests failed handshakes and their log lines."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest
import uvloop

from ophion.rpc.tls.certificates import TlsSettings, server_context
from ophion.rpc.tls.handshakes import Handshakes
from ophion.runtime import failed_handshakes
from ophion.runtime.failed_handshakes import FailedHandshakes
from ophion.runtime.fair_scheduler import FairScheduler
from tests.unit.rpc.tls.test_certificates import identity, pem_file
from tests.unit.rpc.tls.test_handshakes import hello

RUN = pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
Run = Callable[[Awaitable[None]], None]


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record log lines, independent of the logging configuration."""
    messages: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append(record.getMessage())

    logger = logging.Logger("failures", logging.WARNING)
    logger.addHandler(Kept())
    monkeypatch.setattr(failed_handshakes, "logger", logger)
    return messages


def test_many_failures_give_few_log_lines(lines: list[str]) -> None:
    noted = FailedHandshakes("JSON-RPC over HTTP")
    for _ in range(1_000_000):
        noted.record("192.0.2.1", "no shared cipher", 0.0)
    assert len(lines) == 20
    assert lines[0] == (
        "TLS handshake failed client=192.0.2.1 service=JSON-RPC over HTTP so_far=1 reason=no shared cipher"
    )


def test_a_new_reason_is_logged_at_once_and_a_known_one_after_a_pause(lines: list[str]) -> None:
    noted = FailedHandshakes("x")
    for _ in range(1000):
        noted.record("192.0.2.1", "one", 0.0)
    del lines[:]
    noted.record("192.0.2.2", "one", 59.0)
    assert lines == []
    noted.record("192.0.2.2", "another", 59.0)
    noted.record("192.0.2.3", "one", 60.0)
    assert [line.split("client=")[1] for line in lines] == [
        "192.0.2.2 service=x so_far=1 reason=another",
        "192.0.2.3 service=x so_far=1002 reason=one",
    ]


def test_rare_reasons_are_counted_together_when_there_are_too_many(lines: list[str]) -> None:
    noted = FailedHandshakes("x")
    for number in range(1000):
        noted.record("192.0.2.1", f"reason {number}", 0.0)
    assert len(lines) == 32 + 10


class Stage:
    """A port with TLS handshakes, and two parties that do not trust each other."""

    def __init__(self, folder: Path, asks_clients: bool) -> None:
        self.own = pem_file(folder / "node.pem", *identity("node"))
        self.other = pem_file(folder / "other.pem", *identity("other"))
        context = server_context(TlsSettings("", self.own, None, asks_clients, self.own))
        self.handshakes = Handshakes(context, asyncio.Protocol, FairScheduler(), service="here")

    def client(self, trusted: Path, shown: Path | None = None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(trusted))
        context.check_hostname = False
        if shown is not None:
            context.load_cert_chain(shown)
        return context


async def failed_in(lines: list[str], stage: Stage, meet: Callable[[int], Awaitable[None]]) -> str:
    server = await asyncio.get_running_loop().create_server(stage.handshakes.newcomer, "127.0.0.1", 0)
    await meet(server.sockets[0].getsockname()[1])
    async with asyncio.timeout(20):
        while not lines:  # noqa: ASYNC110  # the tested code gives no event
            await asyncio.sleep(0.001)
    server.close()
    (line,) = lines
    words, _, reason = line.partition(" reason=")
    assert words == "TLS handshake failed client=127.0.0.1 service=here so_far=1"
    return reason


@RUN
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_client_that_does_not_trust_the_server(
    run: Run, version: ssl.TLSVersion, tmp_path: Path, lines: list[str]
) -> None:
    async def story() -> None:
        stage = Stage(tmp_path, asks_clients=False)
        context = stage.client(stage.other)
        context.maximum_version = version

        def connect(port: int) -> None:
            with socket.create_connection(("127.0.0.1", port)) as plain, suppress(OSError):
                context.wrap_socket(plain)

        async def meet(port: int) -> None:
            await asyncio.to_thread(connect, port)

        assert await failed_in(lines, stage, meet) == "the client refuses: unknown ca"

    run(story())


@RUN
def test_a_client_that_does_not_trust_the_server_and_sends_no_alert(run: Run, tmp_path: Path, lines: list[str]) -> None:
    """Clients of asyncio close the connection without an alert."""

    async def story() -> None:
        stage = Stage(tmp_path, asks_clients=False)

        async def meet(port: int) -> None:
            with suppress(OSError):
                await asyncio.open_connection("127.0.0.1", port, ssl=stage.client(stage.other))

        assert (await failed_in(lines, stage, meet)).startswith("the client hung up, as some do")

    run(story())


@RUN
@pytest.mark.parametrize("shows", [True, False])
def test_a_client_with_an_unknown_certificate_or_none(run: Run, shows: bool, tmp_path: Path, lines: list[str]) -> None:
    async def story() -> None:
        stage = Stage(tmp_path, asks_clients=True)
        context = stage.client(stage.own, stage.other if shows else None)

        async def meet(port: int) -> None:
            with suppress(OSError):
                reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
                await reader.read()
                writer.close()

        reason = await failed_in(lines, stage, meet)
        if shows:
            assert reason.startswith("the certificate of the client is not accepted: ")
        else:
            assert reason == "peer did not return a certificate"

    run(story())


@RUN
def test_a_client_that_speaks_something_else(run: Run, tmp_path: Path, lines: list[str]) -> None:
    async def story() -> None:
        async def meet(port: int) -> None:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"POST / HTTP/1.1\r\n\r\n")
            with suppress(ConnectionResetError):
                assert await reader.read() == b""
            writer.close()

        reason = await failed_in(lines, Stage(tmp_path, asks_clients=False), meet)
        assert reason == "the client does not use TLS"

    run(story())


@RUN
def test_a_client_that_hangs_up_in_the_middle(run: Run, tmp_path: Path, lines: list[str]) -> None:
    async def story() -> None:
        async def meet(port: int) -> None:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(hello())
            assert (await reader.readexactly(1))[0] == 0x16
            writer.close()

        reason = await failed_in(lines, Stage(tmp_path, asks_clients=False), meet)
        assert reason.startswith("the client hung up")

    run(story())


@RUN
def test_a_port_probe_is_no_failure(run: Run, tmp_path: Path, lines: list[str]) -> None:
    """Health checks of load balancers connect and close without sending anything."""

    async def story() -> None:
        stage = Stage(tmp_path, asks_clients=False)
        server = await asyncio.get_running_loop().create_server(stage.handshakes.newcomer, "127.0.0.1", 0)
        with socket.create_connection(server.sockets[0].getsockname()):
            while not len(stage.handshakes):  # noqa: ASYNC110
                await asyncio.sleep(0.001)
        while len(stage.handshakes):  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        server.close()
        assert lines == []

    run(story())
