from __future__ import annotations

import asyncio

from ophion.peers.connection.receive_scheduler import ReceiveScheduler
from ophion.peers.discovery.udp import (
    ADDRESS_BURST,
    ADDRESS_PER_S,
    MAX_PER_SOURCE,
    MAX_WAITING,
    PORT_BURST,
    UdpSocket,
)
from ophion.runtime.clock import ManualClock, SystemClock


def test_so_many_in_all_and_so_many_from_one_address() -> None:
    async def story() -> None:
        received: list[tuple[bytes, str, int]] = []
        clock = ManualClock()
        scheduler = ReceiveScheduler(asyncio.get_running_loop(), clock)
        socket = UdpSocket(scheduler, clock, lambda data, ip, port: received.append((data, ip, port)))
        for number in range(2 * MAX_PER_SOURCE):
            socket.datagram_received(b"x", ("10.0.0.1", number))
        assert socket.dropped == MAX_PER_SOURCE
        for number in range(2 * MAX_WAITING):
            socket.datagram_received(b"y", (f"10.1.{number >> 8}.{number & 255}", 1))
        for _ in range(1000):
            await asyncio.sleep(0)
        assert len(received) == MAX_WAITING
        socket.datagram_received(b"z", ("::ffff:10.0.0.1", 7))
        await asyncio.sleep(0)
        assert received[-1] == (b"z", "10.0.0.1", 7)

    asyncio.run(story())


def test_packets_of_known_nodes_are_handled_during_a_flood_from_forged_addresses() -> None:
    async def story() -> None:
        received: list[str] = []
        clock = ManualClock()
        scheduler = ReceiveScheduler(asyncio.get_running_loop(), clock)
        socket = UdpSocket(scheduler, clock, lambda data, ip, port: received.append(ip), lambda ip: ip == "10.0.0.1")
        for number in range(2 * MAX_WAITING):
            socket.datagram_received(b"y", (f"10.1.{number >> 8}.{number & 255}", 1))
        socket.datagram_received(b"x", ("10.0.0.1", 1))
        await asyncio.sleep(0)
        assert received[0] == "10.0.0.1"

    asyncio.run(story())


def test_a_flood_of_requests_is_rate_limited_and_hides_no_response() -> None:
    ping, pong = bytes(97) + b"\x01data", bytes(97) + b"\x02data"

    async def story() -> None:
        received: list[tuple[bytes, str]] = []
        clock = ManualClock()
        scheduler = ReceiveScheduler(asyncio.get_running_loop(), clock)
        socket = UdpSocket(scheduler, clock, lambda data, ip, port: received.append((data, ip)))

        async def come(data: bytes, ip: str, times: int, ports: int = 1) -> int:
            received.clear()
            for number in range(times):
                socket.datagram_received(data, (ip, 1 + number % ports))
                await asyncio.sleep(0)
            assert all(one == (data, ip) for one in received)
            return len(received)

        assert await come(ping, "10.0.0.1", 2 * PORT_BURST) == PORT_BURST
        assert await come(b"noise", "10.0.0.1", 5) == 0
        assert await come(pong, "10.0.0.1", 5) == 5, "what this node has asked for"
        assert await come(ping, "10.0.0.2", 5) == 5
        assert await come(ping, "10.0.0.1", 2 * ADDRESS_BURST, ports=200) == ADDRESS_BURST - PORT_BURST
        clock.advance(1)
        assert await come(ping, "10.0.0.1", 2 * ADDRESS_BURST, ports=200) == ADDRESS_PER_S
        for number in range(5000):
            socket.datagram_received(ping, (f"10.1.{number >> 8}.{number & 255}", 1))
            await asyncio.sleep(0)
        assert len(socket._rate_limits) <= 4096, "memory does not grow with addresses"

    asyncio.run(story())


def test_a_failure_does_not_end_it(caplog: object) -> None:
    async def story() -> None:
        received = []

        def receive(data: bytes, ip: str, port: int) -> None:
            received.append(data)
            raise RuntimeError("a bug")

        clock = ManualClock()
        scheduler = ReceiveScheduler(asyncio.get_running_loop(), clock)
        socket = UdpSocket(scheduler, clock, receive)
        socket.datagram_received(b"1", ("127.0.0.1", 1))
        socket.datagram_received(b"2", ("127.0.0.1", 1))
        await asyncio.sleep(0)
        assert received == [b"1", b"2"]

    asyncio.run(story())


def test_over_a_real_socket() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        clock = SystemClock()
        scheduler = ReceiveScheduler(loop, clock)
        received: asyncio.Queue[tuple[bytes, str, int]] = asyncio.Queue()
        here = UdpSocket(scheduler, clock, lambda *got: None)
        there = UdpSocket(scheduler, clock, lambda *got: received.put_nowait(got))
        near, _ = await loop.create_datagram_endpoint(lambda: here, local_addr=("127.0.0.1", 0))
        far, _ = await loop.create_datagram_endpoint(lambda: there, local_addr=("127.0.0.1", 0))
        here.send(b"hello", far.get_extra_info("sockname"))
        data, ip, port = await asyncio.wait_for(received.get(), 5)
        assert (data, ip, port) == (b"hello", "127.0.0.1", near.get_extra_info("sockname")[1])
        here.send(b"x", ("::1", 9))
        here.close()
        there.close()
        here.send(b"late", ("127.0.0.1", 9))

    asyncio.run(story())
