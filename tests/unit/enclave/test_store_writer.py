"""Writes of one loop iteration share a commit, and a failed or cancelled write does not affect the others."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from ophion.enclave.group_ids import legacy_id
from ophion.enclave.store_writer import PAYLOADS, StoreWriter, damaged_payloads
from ophion.errors import StorageError
from ophion.native.enclave import EnclaveKeyring
from ophion.native.store import open_store
from ophion.runtime.thread_pools import ThreadLanes
from ophion.testing.private_transactions import ENCLAVE_SECRETS
from ophion.testing.wait_for import until


def test_a_cancelled_writer_leaves_the_commit_to_others(tmp_path: Path) -> None:
    store, lanes = open_store(tmp_path / "database"), ThreadLanes()
    settled: list[int] = []

    async def story() -> None:
        writer = StoreWriter(store, lanes)
        writes = [
            asyncio.create_task(writer.write([(PAYLOADS, bytes([n]) * 32, b"x")], lambda _, n=n: settled.append(n)))  # type: ignore[misc]
            for n in range(1, 5)
        ]
        await asyncio.sleep(0)
        writes[1].cancel()
        outcomes = await asyncio.gather(*writes, return_exceptions=True)
        assert [isinstance(one, asyncio.CancelledError) for one in outcomes] == [False, True, False, False]
        # the writer stores and reports all rows, even for the caller that was cancelled
        assert settled == [1, 2, 3, 4]
        assert [store.row(PAYLOADS, bytes([n]) * 32) for n in range(1, 5)] == [b"x"] * 4
        # all writes of a failed commit get the error, and the next commit works
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


def test_a_failed_commit_fails_all_its_writers(tmp_path: Path) -> None:
    """A second copy of a payload waits for the write of the first copy and writes nothing. If that write fails, both
    copies fail.
    """
    store, lanes = open_store(tmp_path / "database"), ThreadLanes()

    async def story() -> None:
        writer, going_on = StoreWriter(store, lanes), threading.Event()
        results: list[bool] = []
        held = lanes.write.submit(going_on.wait)
        first = asyncio.create_task(writer.write([("nowhere", b"k", b"v")], results.append))
        await until(lambda: lanes.write.waiting == 2)
        second = asyncio.create_task(writer.write([], results.append))
        await asyncio.sleep(0)
        going_on.set()
        await held
        outcomes = await asyncio.gather(first, second, return_exceptions=True)
        assert [type(one) for one in outcomes] == [StorageError, StorageError]
        assert results == [False, False]
        await writer.write([(PAYLOADS, b"\x09" * 32, b"y")], results.append)
        assert results[-1] is True

    asyncio.run(story())
    lanes.close()
    store.close()


def test_an_operator_hears_when_writing_begins_to_fail(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store, lanes = open_store(tmp_path / "database"), ThreadLanes()

    async def story() -> None:
        writer = StoreWriter(store, lanes)
        for is_good in (False, False, True, False):
            change = (PAYLOADS if is_good else "nowhere", b"\x01" * 32, b"x")
            await asyncio.gather(writer.write([change]), return_exceptions=True)

    asyncio.run(story())
    said = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert said == ["cannot write private payloads error=there is no table 'nowhere'"] * 2
    lanes.close()
    store.close()


def test_payloads_that_are_not_what_was_sealed_are_found(tmp_path: Path) -> None:
    store, keyring = open_store(tmp_path / "database"), EnclaveKeyring(ENCLAVE_SECRETS[:1])
    (own,) = keyring.public_keys
    sealed = [keyring.seal(b"dGV4dA==", own, [own], 1, legacy_id([own]), bytes([n]) * 80) for n in range(1, 7)]
    store.write_rows([(PAYLOADS, key, record) for key, record in sealed])
    assert damaged_payloads(store, 10) == []
    (first, record), (second, other), (third, _) = sealed[:3]
    flipped = bytearray(record)
    flipped[-1] ^= 1
    store.write_rows([(PAYLOADS, first, bytes(flipped)), (PAYLOADS, second, b"\xff"), (PAYLOADS, third, other)])
    assert sorted(damaged_payloads(store, 10)) == sorted([first, second, third])
    assert len(damaged_payloads(store, 2)) == 2
    assert damaged_payloads(store, 0) == []
    store.close()
