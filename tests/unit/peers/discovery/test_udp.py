from __future__ import annotations

import asyncio

from ophion.peers.connection.turns import Turns
from ophion.peers.discovery.udp import MAX_PER_SOURCE, MAX_WAITING, UdpSocket
from ophion.runtime.clock import ManualClock, SystemClock


def test_so_many_in_all_and_so_many_from_one_address() -> None:
    async def story() -> None:
        heard: list[tuple[bytes, str, int]] = []
        turns = Turns(asyncio.get_running_loop(), ManualClock())
        socket = UdpSocket(turns, lambda data, ip, port: heard.append((data, ip, port)))
        for _ in range(2 * MAX_PER_SOURCE):
            socket.datagram_received(b"x", ("10.0.0.1", 1))
        assert socket.dropped == MAX_PER_SOURCE
        for number in range(2 * MAX_WAITING):
            socket.datagram_received(b"y", (f"10.1.{number >> 8}.{number & 255}", 1))
        for _ in range(1000):
            await asyncio.sleep(0)
        assert len(heard) == MAX_WAITING
        socket.datagram_received(b"z", ("::ffff:10.0.0.1", 7))
        await asyncio.sleep(0)
        assert heard[-1] == (b"z", "10.0.0.1", 7)

    asyncio.run(story())


def test_a_failure_does_not_end_it(caplog: object) -> None:
    async def story() -> None:
        heard = []

        def receive(data: bytes, ip: str, port: int) -> None:
            heard.append(data)
            raise RuntimeError("a bug")

        turns = Turns(asyncio.get_running_loop(), ManualClock())
        socket = UdpSocket(turns, receive)
        socket.datagram_received(b"1", ("127.0.0.1", 1))
        socket.datagram_received(b"2", ("127.0.0.1", 1))
        await asyncio.sleep(0)
        assert heard == [b"1", b"2"]

    asyncio.run(story())


def test_over_a_real_socket() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        turns = Turns(loop, SystemClock())
        heard: asyncio.Queue[tuple[bytes, str, int]] = asyncio.Queue()
        here, there = UdpSocket(turns, lambda *got: None), UdpSocket(turns, lambda *got: heard.put_nowait(got))
        near, _ = await loop.create_datagram_endpoint(lambda: here, local_addr=("127.0.0.1", 0))
        far, _ = await loop.create_datagram_endpoint(lambda: there, local_addr=("127.0.0.1", 0))
        here.send(b"hello", far.get_extra_info("sockname"))
        data, ip, port = await asyncio.wait_for(heard.get(), 5)
        assert (data, ip, port) == (b"hello", "127.0.0.1", near.get_extra_info("sockname")[1])
        here.send(b"x", ("::1", 9))
        here.close()
        there.close()
        here.send(b"late", ("127.0.0.1", 9))

    asyncio.run(story())
