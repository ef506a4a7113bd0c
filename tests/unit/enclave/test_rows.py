"""Rows on their way to disk: those of one turn together, and nobody spoils it for the others."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ophion.enclave.rows import PAYLOADS, RowWriter
from ophion.errors import StorageError
from ophion.native.store import open_store
from ophion.runtime.lanes import ThreadLanes


def test_whoever_gives_up_takes_the_commit_from_nobody(tmp_path: Path) -> None:
    store, lanes = open_store(tmp_path / "database"), ThreadLanes()
    settled: list[int] = []

    async def story() -> None:
        writer = RowWriter(store, lanes)
        writes = [
            asyncio.create_task(writer.write([(PAYLOADS, bytes([n]) * 32, b"x")], lambda n=n: settled.append(n)))  # type: ignore[misc]
            for n in range(1, 5)
        ]
        await asyncio.sleep(0)
        writes[1].cancel()
        outcomes = await asyncio.gather(*writes, return_exceptions=True)
        assert [isinstance(one, asyncio.CancelledError) for one in outcomes] == [False, True, False, False]
        # all of it is there, and was told of, also where nobody waited any more
        assert settled == [1, 2, 3, 4]
        assert [store.row(PAYLOADS, bytes([n]) * 32) for n in range(1, 5)] == [b"x"] * 4
        # what fails is told to those who share its commit, and the next one works
        failing = [writer.write([("nowhere", b"k", b"v")]), writer.write([(PAYLOADS, b"\x09" * 32, b"x")])]
        outcomes = await asyncio.gather(*failing, return_exceptions=True)
        assert all(isinstance(one, StorageError) for one in outcomes)
        assert store.row(PAYLOADS, b"\x09" * 32) is None
        await writer.write([(PAYLOADS, b"\x09" * 32, b"y")])
        assert store.row(PAYLOADS, b"\x09" * 32) == b"y"
        lanes.close()
        with pytest.raises(asyncio.CancelledError):
            await writer.write([(PAYLOADS, b"\x0a" * 32, b"y")])

    asyncio.run(story())
    store.close()
