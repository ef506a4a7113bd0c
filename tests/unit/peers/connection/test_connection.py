"""Tests connections between in-memory hosts, in virtual time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from random import Random

import pytest

from ophion.errors import DecodeError, StorageError
from ophion.native.crypto import PrivateKey
from ophion.peers.connection.send_queue import HARD_LIMIT, SOFT_LIMIT
from ophion.peers.connection.task_group import MAX_TASKS
from ophion.peers.connection.timeouts import StageTimeouts
from ophion.peers.disconnect_reasons import DisconnectReason, PeerMisbehaved
from ophion.peers.peer import Peer
from ophion.peers.rlpx.capability import Capability
from ophion.peers.rlpx.session import PING_ID, Stage
from ophion.runtime.clock import ManualClock
from ophion.testing.memory_connection import Host, MemoryConnection
from ophion.testing.memory_transport import connect_in_memory
from ophion.testing.virtual_loop import run_virtually

A, B = (PrivateKey(bytes(31) + bytes([number])) for number in (1, 2))
ETH = Capability("eth", 68, 17, ("Status",))
TIMING = StageTimeouts()
NOISE = Random(1).randbytes(1_000_000)
"""Random bytes that cannot be compressed."""


class Echo:
    """A sub-protocol that records events and follows the script of a test."""

    capabilities = (ETH,)

    def __init__(self) -> None:
        self.log: list[tuple[int, bytes]] = []
        self.closings = 0
        self.peer: Peer | None = None
        self.on_message: Callable[[int, bytes], None] = lambda code, payload: None
        self.greeting = b"status"

    def attach(self, peer: Peer, version: int) -> Echo:
        self.peer = peer
        assert peer.send("eth", 0, self.greeting)
        return self

    def received(self, code: int, payload: bytes) -> None:
        self.log.append((code, payload))
        self.on_message(code, payload)

    def oversized(self, code: int, size: int) -> None:
        self.log.append((code, size))

    def closed(self) -> None:
        self.closings += 1


class Scene:
    """Two hosts with a connection between them."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.echo_a, self.echo_b = Echo(), Echo()
        self.a, self.b = Host(A, [self.echo_a], clock), Host(B, [self.echo_b], clock)
        self.meeting = MemoryConnection(self.a, self.b)

    async def begin(self) -> tuple[Peer, Peer]:
        """Return both peer objects after the Hellos: b as a sees it, and a as b sees it."""
        peers = await self.meeting.peers()
        await settle()
        self.echo_a.log.clear()
        self.echo_b.log.clear()
        return peers


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(100_000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came to that")


async def settle() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


def play(story: Callable[[Scene], Awaitable[None]]) -> None:
    clock = ManualClock()

    async def whole() -> None:
        await story(Scene(clock))

    run_virtually(whole(), clock)


def test_both_sides_become_peers_and_speak_at_once() -> None:
    async def story(scene: Scene) -> None:
        seen_by_a, seen_by_b = await scene.meeting.peers()
        await settle()
        assert scene.echo_a.log == scene.echo_b.log == [(0, b"status")]
        assert seen_by_a.id == B.public_key
        assert not seen_by_a.is_inbound
        assert seen_by_b.address == A.address
        assert seen_by_b.is_inbound
        assert seen_by_a.remote == seen_by_b.local == ("127.0.0.1", 30303)
        assert list(scene.a.peers) == [seen_by_a]
        assert scene.a.traffic.connected == {"outbound": 1}
        assert scene.b.traffic.connected == {"inbound": 1}
        seen_by_a.disconnect(DisconnectReason.REQUESTED)
        await scene.meeting.wait_closed()

    play(story)


def test_messages_arrive_in_order_whatever_their_size() -> None:
    async def story(scene: Scene) -> None:
        seen_by_a, _ = await scene.begin()
        wanted = [(number % 17, bytes([number]) * (number * 997)) for number in range(200)]
        for code, payload in wanted:
            assert seen_by_a.send("eth", code, payload)
            await asyncio.sleep(0)
        await until(lambda: len(scene.echo_b.log) == len(wanted))
        assert scene.echo_b.log == wanted
        assert scene.b.traffic.received["eth", "Status", 0] == 1 + sum(code == 0 for code, _ in wanted)
        assert scene.a.traffic.bytes_sent == scene.b.traffic.bytes_received

    play(story)


def test_responses_are_not_queued_twice() -> None:
    async def story(scene: Scene) -> None:
        seen_by_a, seen_by_b = await scene.begin()

        def answer(code: int, payload: bytes) -> None:
            seen_by_b.send("eth", 2, b"answer")

        scene.echo_b.on_message = answer
        scene.meeting.transports[0].write(scene.meeting.near._session.seal([(0x11, b"question")] * 2_000))
        while len(scene.echo_a.log) < 2_000:
            assert len(scene.b.context.scheduler) <= 1
            await asyncio.sleep(0)
        assert seen_by_a.is_open

    play(story)


def test_a_disconnect_carries_its_reason_to_the_other_side() -> None:
    async def story(scene: Scene) -> None:
        seen_by_a, seen_by_b = await scene.begin()
        seen_by_a.disconnect(DisconnectReason.TOO_MANY_PEERS, "enough")
        assert not seen_by_a.is_open
        assert not seen_by_a.send("eth", 1, b"late")
        await scene.meeting.wait_closed()
        assert scene.clock.elapsed < TIMING.closing
        [here], [there] = scene.a.endings, scene.b.endings
        assert (here.reason, here.by_us) == (DisconnectReason.TOO_MANY_PEERS, True)
        assert (there.reason, there.by_us) == (DisconnectReason.TOO_MANY_PEERS, False)
        assert len(scene.a.peers) == len(scene.b.peers) == 0
        assert scene.echo_a.closings == scene.echo_b.closings == 1
        assert scene.a.traffic.disconnected == {("local", "too_many_peers"): 1}
        assert scene.b.traffic.disconnected == {("remote", "too_many_peers"): 1}
        assert not seen_by_b.is_open

    play(story)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (PeerMisbehaved(DisconnectReason.USELESS, "cannot serve its head"), DisconnectReason.USELESS),
        (DecodeError("not a list"), DisconnectReason.BREACH),
        (RuntimeError("a bug"), DisconnectReason.SUBPROTOCOL),
        (StorageError("the disk is full"), DisconnectReason.SUBPROTOCOL),
    ],
)
@pytest.mark.parametrize("place", ["handler", "task"])
def test_a_failure_ends_its_connection_and_no_other(
    error: Exception, reason: DisconnectReason, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "ophion.peers.connection.connection")

    async def story(scene: Scene) -> None:
        other = MemoryConnection(Host(PrivateKey(bytes(31) + b"\x03"), [Echo()], scene.clock), scene.b)
        seen_by_a, seen_by_b = await scene.begin()
        await other.peers()

        async def fail_later() -> None:
            await asyncio.sleep(1.0)
            raise error

        def fail(code: int, payload: bytes) -> None:
            if place == "handler":
                raise error
            assert seen_by_b.spawn(fail_later())

        scene.echo_b.on_message = fail
        seen_by_a.send("eth", 1, b"boom")
        await scene.meeting.wait_closed()
        assert scene.a.endings[0].reason is reason
        assert [ending.reason for ending in scene.b.endings] == [reason]
        assert len(scene.b.peers) == 1
        assert not other.tasks[1].done()

    play(story)


def test_trouble_with_the_disk_is_one_line_and_no_traceback(caplog: pytest.LogCaptureFixture) -> None:
    async def story(scene: Scene) -> None:
        seen_by_a, _ = await scene.begin()

        def fail(code: int, payload: bytes) -> None:
            raise StorageError("the disk is full")

        scene.echo_b.on_message = fail
        seen_by_a.send("eth", 1, b"boom")
        await scene.meeting.wait_closed()

    play(story)
    [record] = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.getMessage().endswith("error=the disk is full")
    assert record.exc_info is None


def test_a_sub_protocol_that_fails_while_closing_does_not_stop_the_rest(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "ophion.peers.connection.connection")

    async def story(scene: Scene) -> None:
        seen_by_a, _ = await scene.begin()

        def broken() -> None:
            raise RuntimeError("a bug")

        scene.echo_a.closed = broken  # type: ignore[method-assign]
        seen_by_a.disconnect(DisconnectReason.REQUESTED)
        await scene.meeting.wait_closed()
        assert len(scene.a.peers) == 0

    play(story)


def test_tasks_are_bounded_and_end_with_the_connection() -> None:
    async def story(scene: Scene) -> None:
        seen_by_a, _ = await scene.begin()
        cancelled = []

        async def work(number: int) -> None:
            try:
                await asyncio.sleep(1e6)
            finally:
                cancelled.append(number)

        taken = [seen_by_a.spawn(work(number)) for number in range(MAX_TASKS + 3)]
        assert taken == [True] * MAX_TASKS + [False] * 3
        await settle()
        seen_by_a.disconnect(DisconnectReason.REQUESTED)
        assert not seen_by_a.spawn(work(99))
        await settle()
        assert sorted(cancelled) == list(range(MAX_TASKS))
        await scene.meeting.wait_closed()

    play(story)


def test_a_finished_task_frees_its_slot() -> None:
    async def story(scene: Scene) -> None:
        seen_by_a, _ = await scene.begin()

        async def work() -> None: ...

        for _ in range(5 * MAX_TASKS):
            assert seen_by_a.spawn(work())
            await settle()
        assert scene.meeting.near.is_open

    play(story)


# --- time ----------------------------------------------------------------------------------------------


def test_silence_is_answered_with_a_ping_and_more_silence_with_goodbye() -> None:
    async def story(scene: Scene) -> None:
        await scene.begin()
        near, far = scene.meeting.transports
        begin = scene.clock.elapsed
        far.is_frozen = True  # from now on, no message of node b reaches node a
        near.is_frozen = True
        await scene.meeting.wait_closed()
        assert scene.clock.elapsed - begin == pytest.approx(2 * TIMING.idle + TIMING.closing)
        assert scene.a.endings[0].reason is scene.b.endings[0].reason is DisconnectReason.TIMEOUT
        assert scene.a.traffic.sent["p2p", "Ping", PING_ID] == 1

    play(story)


def test_two_idle_peers_keep_each_other_alive() -> None:
    async def story(scene: Scene) -> None:
        await scene.begin()
        await asyncio.sleep(3607)
        assert scene.meeting.near.is_open
        assert scene.meeting.far.is_open
        pings = scene.a.traffic.sent["p2p", "Ping", 2] + scene.b.traffic.sent["p2p", "Ping", 2]
        assert 200 <= pings <= 500
        assert scene.a.traffic.received["p2p", "Ping", 2] == scene.b.traffic.sent["p2p", "Ping", 2]

    play(story)


def test_a_busy_peer_is_never_pinged() -> None:
    async def story(scene: Scene) -> None:
        seen_by_a, seen_by_b = await scene.begin()
        for _ in range(100):
            await asyncio.sleep(10)
            seen_by_a.send("eth", 1, b"x")
            seen_by_b.send("eth", 1, b"x")
        assert scene.a.traffic.sent["p2p", "Ping", 2] == 0

    play(story)


@pytest.mark.parametrize("stage", [Stage.HANDSHAKE, Stage.HELLO])
def test_who_does_not_get_on_is_left(stage: Stage) -> None:
    clock = ManualClock()

    async def story() -> None:
        host = Host(B, [Echo()], clock)
        connection = host.connection()
        silent = Silent()
        connect_in_memory(asyncio.get_running_loop(), silent, connection)
        task = asyncio.create_task(connection.run())
        if stage is Stage.HELLO:
            other = Host(A, [Echo()], clock).connection(B.public_key)
            silent.write(other._session.take_output())
            await asyncio.sleep(4.0)
        await task
        limit = TIMING.handshake if stage is Stage.HANDSHAKE else TIMING.hello
        assert clock.elapsed == pytest.approx(limit, abs=2.5)
        assert host.endings[0].reason is DisconnectReason.TIMEOUT

    run_virtually(story(), clock)


class Silent(asyncio.Protocol):
    """A raw connection that sends only the bytes that the test gives."""

    def __init__(self) -> None:
        self.received = b""
        self.is_lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def write(self, data: bytes) -> None:
        self.transport.write(data)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self.received += data

    def connection_lost(self, error: Exception | None) -> None:
        self.is_lost = True


def test_a_message_that_trickles_is_not_waited_for_for_ever() -> None:
    async def story(scene: Scene) -> None:
        _, seen_by_b = await scene.begin()
        scene.meeting.transports[0].is_frozen = True
        frame = scene.meeting.near._session.seal([(0x10, bytes(range(256)) * 100)])
        begin = scene.clock.elapsed
        for byte in frame:
            if not scene.meeting.far.is_open:
                break
            scene.meeting.far.data_received(bytes([byte]))
            seen_by_b.send("eth", 1, b"so that the other side hears something")
            await asyncio.sleep(1)
        assert scene.clock.elapsed - begin <= TIMING.message + 2 * TIMING.idle
        assert scene.b.endings[0].reason is DisconnectReason.TIMEOUT

    play(story)


def test_a_process_that_stood_still_reads_before_it_judges() -> None:
    async def story(scene: Scene) -> None:
        await scene.begin()
        await asyncio.sleep(TIMING.idle - 1)
        scene.clock.advance(60)
        await asyncio.sleep(100)
        assert scene.meeting.near.is_open
        for transport in scene.meeting.transports:
            transport.is_frozen = True
        await asyncio.sleep(TIMING.idle - 1)
        scene.clock.advance(60)
        await asyncio.sleep(TIMING.idle + TIMING.closing + 2)
        assert not scene.meeting.near.is_open, "but a lost peer is still noticed"

    play(story)


def test_a_dead_connection_is_found_out_when_the_peer_comes_again() -> None:
    async def story(scene: Scene) -> None:
        await scene.begin()
        for transport in scene.meeting.transports:
            transport.is_frozen = True
        begin = scene.clock.elapsed
        scene.meeting.far.probe()
        scene.meeting.far.probe()
        await asyncio.sleep(TIMING.probe)
        await settle()
        assert not scene.meeting.far.is_open
        assert scene.clock.elapsed - begin < 2 * TIMING.probe

    play(story)


def test_a_live_connection_survives_a_probe() -> None:
    async def story(scene: Scene) -> None:
        await scene.begin()
        for _ in range(3):
            scene.meeting.far.probe()
            await asyncio.sleep(10)
        await asyncio.sleep(100)
        assert scene.meeting.far.is_open

    play(story)


# --- bounds --------------------------------------------------------------------------------------------


def test_gossip_is_dropped_for_a_peer_that_does_not_read_and_answers_end_it() -> None:
    async def story(scene: Scene) -> None:
        seen_by_a, _ = await scene.begin()
        scene.meeting.transports[0].is_frozen = True
        sent = 0
        while seen_by_a.send("eth", 2, NOISE[:100_000], may_drop=True):
            sent += 1
            await asyncio.sleep(0)
        assert SOFT_LIMIT // 100_000 - 3 <= sent <= SOFT_LIMIT // 100_000 + 3
        assert scene.a.traffic.dropped == {"eth": 1}
        assert seen_by_a.is_open
        while seen_by_a.send("eth", 6, NOISE):
            assert scene.meeting.near.waiting_bytes < HARD_LIMIT + 2_000_000
        assert not seen_by_a.is_open
        await settle()
        assert scene.a.endings[0].reason is DisconnectReason.TIMEOUT
        assert scene.meeting.near.waiting_bytes < 1_000_000

    play(story)


def test_a_peer_that_takes_nothing_of_what_waits_for_it_is_left() -> None:
    async def story(scene: Scene) -> None:
        seen_by_a, seen_by_b = await scene.begin()
        scene.meeting.transports[0].is_frozen = True
        assert seen_by_a.send("eth", 6, NOISE)
        for _ in range(10):
            await asyncio.sleep(9)
            seen_by_b.send("eth", 1, b"I am alive, I only do not read")
        assert not seen_by_a.is_open
        assert "the peer reads none of" in scene.a.endings[0].text

    play(story)


def test_a_slow_reader_is_waited_for() -> None:
    async def story(scene: Scene) -> None:
        seen_by_a, _ = await scene.begin()
        transport = scene.meeting.transports[0]
        payload = NOISE
        transport.is_frozen = True
        assert seen_by_a.send("eth", 6, payload)
        for _ in range(30):
            await asyncio.sleep(2)
            transport.thaw()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            transport.is_frozen = True
        assert scene.echo_b.log == [(6, payload)]

    play(story)


def test_a_flood_of_small_messages_pauses_reading_and_leaves_the_loop_its_turns() -> None:
    async def story(scene: Scene) -> None:
        await scene.begin()
        work = 0.001

        def slow(code: int, payload: bytes) -> None:
            scene.clock.advance(work)

        scene.echo_b.on_message = slow
        flood = scene.meeting.near._session.seal([(0x10, b"x")] * 20_000)
        scene.meeting.transports[0].write(flood)
        longest, last = 0.0, scene.clock.monotonic()
        was_paused = False
        while len(scene.echo_b.log) < 20_000:
            await asyncio.sleep(0)
            now = scene.clock.monotonic()
            longest, last = max(longest, now - last), now
            was_paused |= not scene.meeting.transports[1].is_reading()
            assert scene.meeting.far._channel.inbox_bytes <= 2 * 256 * 1024
        assert longest <= 0.004 + 8 * work
        assert was_paused
        assert scene.meeting.far.is_open

    play(story)


def test_a_flood_of_pings_is_not_answered_without_end() -> None:
    async def story(scene: Scene) -> None:
        await scene.begin()
        scene.meeting.transports[1].is_frozen = True  # node b does not read the responses
        for _ in range(40):
            scene.meeting.transports[0].write(scene.meeting.near._session.seal([(PING_ID, b"\xc0")] * 2_000))
            await asyncio.sleep(0.1)
        assert scene.meeting.far.waiting_bytes <= SOFT_LIMIT + 1_000_000

    play(story)


# --- closing -------------------------------------------------------------------------------------------


def test_a_peer_that_does_not_close_is_cut_off() -> None:
    async def story(scene: Scene) -> None:
        seen_by_a, _ = await scene.begin()
        scene.meeting.transports[0].is_frozen = True
        begin = scene.clock.elapsed
        seen_by_a.disconnect(DisconnectReason.REQUESTED)
        await scene.meeting.tasks[0]
        assert scene.clock.elapsed - begin == pytest.approx(TIMING.closing)

    play(story)


def test_messages_before_the_end_of_the_socket_are_handled() -> None:
    async def story(scene: Scene) -> None:
        await scene.begin()
        session, transport = scene.meeting.near._session, scene.meeting.transports[0]
        transport.write(session.seal([(0x11, b"last words")] * 100))
        transport.write(session.seal_disconnect(DisconnectReason.CLIENT_QUITTING))
        transport.close()
        await scene.meeting.wait_closed()
        assert len(scene.echo_b.log) == 100
        assert scene.b.endings[0].reason is DisconnectReason.CLIENT_QUITTING

    play(story)


def test_a_socket_that_breaks_may_have_left_the_reason_behind() -> None:
    async def story(scene: Scene) -> None:
        await scene.begin()
        far = scene.meeting.far
        far.data_received(scene.meeting.near._session.seal_disconnect(DisconnectReason.SUBPROTOCOL))
        far.connection_lost(ConnectionResetError("reset"))
        assert (scene.b.endings[0].reason, scene.b.endings[0].by_us) == (DisconnectReason.SUBPROTOCOL, False)

    play(story)


def test_a_socket_that_breaks_without_a_word() -> None:
    async def story(scene: Scene) -> None:
        await scene.begin()
        scene.meeting.transports[0].abort()
        await scene.meeting.wait_closed()
        assert [ending.reason for ending in scene.a.endings + scene.b.endings] == [DisconnectReason.TCP_ERROR] * 2

    play(story)


def test_garbage_ends_the_connection_without_a_word() -> None:
    async def story(scene: Scene) -> None:
        await scene.begin()
        sent = scene.b.traffic.bytes_sent
        scene.meeting.transports[0].write(bytes(64))
        await scene.meeting.wait_closed()
        assert scene.b.endings[0].reason is DisconnectReason.BREACH
        assert scene.b.traffic.bytes_sent == sent

    play(story)


def test_nothing_of_a_connection_that_ends_in_a_handler_is_handled_any_more() -> None:
    async def story(scene: Scene) -> None:
        seen_by_a, seen_by_b = await scene.begin()
        scene.echo_b.on_message = lambda code, payload: seen_by_b.disconnect(DisconnectReason.USELESS)
        for _ in range(20):
            seen_by_a.send("eth", 1, b"x")
        await scene.meeting.wait_closed()
        assert scene.echo_b.log == [(1, b"x")]
        assert scene.echo_b.closings == 1

    play(story)


@pytest.mark.parametrize("steps", range(0, 30, 3))
def test_cancelled_at_any_moment_nothing_is_left_behind(steps: int) -> None:
    async def story(scene: Scene) -> None:
        for _ in range(steps):
            await asyncio.sleep(0)
        scene.meeting.tasks[steps % 2].cancel()
        with pytest.raises(asyncio.CancelledError):
            await scene.meeting.tasks[steps % 2]
        await asyncio.wait(scene.meeting.tasks)
        await settle()
        assert len(scene.a.endings) == len(scene.b.endings) == 1
        assert len(scene.a.peers) == len(scene.b.peers) == 0
        assert scene.echo_a.closings == (scene.echo_a.peer is not None)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    play(story)


def test_a_refused_peer_gets_the_reason() -> None:
    async def story(scene: Scene) -> None:
        def refuse(peer: Peer) -> None:
            raise PeerMisbehaved(DisconnectReason.ALREADY_CONNECTED, "no")

        scene.b.judge = refuse  # type: ignore[method-assign]
        await scene.meeting.wait_closed()
        assert scene.a.endings[0].reason is DisconnectReason.ALREADY_CONNECTED
        assert not scene.a.endings[0].by_us
        assert scene.echo_b.peer is None

    play(story)


def test_a_sub_protocol_that_refuses_to_attach() -> None:
    async def story(scene: Scene) -> None:
        def refuse(peer: Peer, version: int) -> Echo:
            raise PeerMisbehaved(DisconnectReason.SUBPROTOCOL, "another network")

        scene.echo_b.attach = refuse  # type: ignore[method-assign]
        await scene.meeting.wait_closed()
        assert scene.a.endings[0].reason is DisconnectReason.SUBPROTOCOL
        assert len(scene.b.peers) == 0
        assert scene.echo_b.closings == 0

    play(story)
