"""Messages in the outbox reach a recipient, no matter how often it disconnects."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ophion.enclave.options import DeliveryMode
from ophion.runtime.thread_pools import ThreadLanes
from ophion.testing.enclaves import EnclaveMember, at_work, met, part
from ophion.testing.wait_for import until

SECRET = b"47 pieces, and nobody else shall know"


class Disk:
    """The lanes (worker threads) of one enclave, with a write lane that the test can block."""

    def __init__(self) -> None:
        self.lanes = ThreadLanes()

    @contextmanager
    def slow(self) -> Iterator[None]:
        """Block all writes during the `with` block."""
        going_on = threading.Event()
        job = self.lanes.write.submit(going_on.wait)
        try:
            yield
        finally:
            going_on.set()
            job.cancel()

    async def is_waited_for(self) -> None:
        """Wait until a write is queued."""
        await until(lambda: self.lanes.write.waiting == 2)


def pair(path: Path) -> tuple[EnclaveMember, Disk, EnclaveMember, Disk]:
    here, there = Disk(), Disk()
    a = EnclaveMember(path, 1, DeliveryMode.QUEUE, lanes=here.lanes)
    return a, here, EnclaveMember(path, 2, DeliveryMode.QUEUE, lanes=there.lanes), there


def test_who_is_back_while_the_last_attempt_ends_gets_its_part(tmp_path: Path) -> None:
    a, here, b, there = pair(tmp_path)

    async def story() -> None:
        async with at_work(a):  # member b requests nothing, so member a must deliver all payloads
            key = await a.enclave.send(SECRET, a.key, [b.key])
            with here.slow():
                with there.slow():
                    meetings = await met(a, b)
                    await there.is_waited_for()
                    await part(meetings)
                    # the connection of a and b is lost while a message waits to be written, and the delivery still runs
                    await here.is_waited_for()
                meetings = await met(a, b)
            await until(lambda: not a.enclave.status()["outbox"])
            assert None not in await b.enclave.receive_many([key])
            await part(meetings)

    asyncio.run(story())
    for disk in (here, there):
        disk.lanes.close()


def test_a_cancelled_send_leaves_the_outbox_to_other_senders(tmp_path: Path) -> None:
    a, here, b, there = pair(tmp_path)

    async def story() -> None:
        async with at_work(a):  # member b requests nothing, so member a must deliver all payloads
            with there.slow():
                with here.slow():
                    first = asyncio.create_task(a.enclave.send(SECRET, a.key, [b.key]))
                    await here.is_waited_for()
                    meetings = await met(a, b)
                # the payload is in the outbox and was sent to member b, which has not acknowledged it yet
                await there.is_waited_for()
                first.cancel()
                await asyncio.wait({first})
            await until(lambda: not a.enclave.status()["outbox"])
            await part(meetings)

    asyncio.run(story())
    for disk in (here, there):
        disk.lanes.close()


def test_arrivals_are_announced_after_their_sender_has_left(tmp_path: Path) -> None:
    """The executor is notified of a payload even if the sender has disconnected, because the payload's marker may
    already be processed.
    """
    a, here, b, there = pair(tmp_path)

    async def story() -> None:
        async with at_work(a):
            meetings = await met(a, b)
            with there.slow():
                sending = asyncio.create_task(a.enclave.send(SECRET, a.key, [b.key]))
                await there.is_waited_for()
                await part(meetings)
                key = await sending
            await until(lambda: b.store.row("payloads", key) is not None)
            await until(lambda: b.late == [key])

    asyncio.run(story())
    for disk in (here, there):
        disk.lanes.close()
