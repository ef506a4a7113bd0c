"""The journal of local transactions survives any crash."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ophion.errors import StorageError
from ophion.native.transactions import decode_transactions, journal_lines
from ophion.pool.journal import JournalEntry, TransactionJournal, lines
from ophion.testing.signing import DEV_KEYS, legacy_transaction


def opened(path: Path) -> tuple[TransactionJournal, list[JournalEntry]]:
    journal = TransactionJournal(path)
    return journal, journal.open()


def test_what_was_appended_is_there_without_closing(tmp_path: Path) -> None:
    journal, found = opened(tmp_path / "journal")
    assert found == []
    journal.append(lines([JournalEntry(b"\x01\x02", 1000.5), JournalEntry(b"\xff", 1001.0)]))
    _, again = opened(tmp_path / "journal")
    assert again == [JournalEntry(b"\x01\x02", 1000.5), JournalEntry(b"\xff", 1001.0)]


def test_a_torn_last_line_is_left_out_and_the_next_entry_starts_clean(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.write_bytes(b"1000 0102\n2000 0")
    journal, found = opened(path)
    assert found == [JournalEntry(b"\x01\x02", 1.0)]
    journal.append(lines([JournalEntry(b"\x03", 3.0)]))
    assert opened(path)[1] == [JournalEntry(b"\x01\x02", 1.0), JournalEntry(b"\x03", 3.0)]


def test_rewriting_keeps_only_what_is_given(tmp_path: Path) -> None:
    journal, _ = opened(tmp_path / "journal")
    journal.append(lines([JournalEntry(b"\x01", 1.0), JournalEntry(b"\x02", 2.0)]))
    journal.rewrite([JournalEntry(b"\x02", 2.0)])
    journal.append(lines([JournalEntry(b"\x03", 3.0)]))
    journal.close()
    assert opened(tmp_path / "journal")[1] == [JournalEntry(b"\x02", 2.0), JournalEntry(b"\x03", 3.0)]
    assert [file.name for file in tmp_path.iterdir()] == ["journal"]


def test_a_journal_is_wasteful_when_most_of_it_is_dead(tmp_path: Path) -> None:
    journal, _ = opened(tmp_path / "journal")
    assert not journal.is_wasteful(0)
    journal.append(lines([JournalEntry(bytes(1000), 1.0)] * 600))
    assert journal.is_wasteful(0)
    assert not journal.is_wasteful(600_000)


def test_there_is_nothing_to_sync_twice(tmp_path: Path) -> None:
    journal, _ = opened(tmp_path / "journal")
    assert journal.sync_job() is None
    journal.append(lines([JournalEntry(b"\x01", 1.0)]))
    job = journal.sync_job()
    assert job is not None
    journal.rewrite([])
    job()
    last = journal.sync_job()
    assert last is not None
    last()
    assert journal.sync_job() is None


def test_what_is_acknowledged_while_the_file_is_written_anew_outlives_a_kill(tmp_path: Path) -> None:
    path, beside = tmp_path / "journal", tmp_path / "journal.new"
    journal, _ = opened(path)
    journal.append(lines([JournalEntry(b"\x01", 1.0), JournalEntry(b"\x02", 2.0)]))
    journal.rewrite([JournalEntry(b"\x02", 2.0)])
    journal.append(lines([JournalEntry(b"\x03", 3.0)]))
    with path.open("ab") as old:
        old.write(b"4000 0")  # the last line of the journal is incomplete
    assert beside.exists()
    assert opened(path)[1] == [
        JournalEntry(b"\x01", 1.0),
        *2 * [JournalEntry(b"\x02", 2.0)],
        JournalEntry(b"\x03", 3.0),
    ]
    assert not beside.exists()


def test_one_new_file_at_a_time_and_the_disk_is_left_to_the_job(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal, _ = opened(path)
    journal.append(lines([JournalEntry(bytes(1000), 1.0)] * 600))
    journal.rewrite([])
    journal.append(lines([JournalEntry(bytes(1000), 1.0)] * 600))
    assert not journal.is_wasteful(0)
    assert path.stat().st_size > 1_000_000
    job = journal.sync_job()
    assert job is not None
    job()
    assert not path.with_name("journal.new").exists()
    assert journal.is_wasteful(0)
    journal.close()


def test_a_journal_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="Cannot use .*: No such file or directory"):
        TransactionJournal(tmp_path / "absent" / "journal").open()


def test_a_closed_journal_takes_nothing(tmp_path: Path) -> None:
    journal, _ = opened(tmp_path / "journal")
    journal.close()
    journal.append(lines([JournalEntry(b"\x01", 1.0)]))
    journal.rewrite([])
    journal.close()
    assert opened(tmp_path / "journal")[1] == []


@settings(max_examples=40)
@given(st.binary(max_size=400))
def test_any_bytes_can_be_read_as_a_journal(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("journal") / "journal"
    path.write_bytes(content)
    journal, found = opened(path)
    assert opened(path)[1] == found
    journal.close()


@settings(max_examples=40)
@given(st.lists(st.binary(min_size=1, max_size=50), max_size=5), st.integers(0, 1000))
def test_a_cut_journal_gives_back_a_beginning_of_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, raws: list[bytes], cut: int
) -> None:
    path = tmp_path_factory.mktemp("journal") / "journal"
    journal, _ = opened(path)
    journal.append(lines([JournalEntry(raw, 1.0) for raw in raws]))
    whole = path.read_bytes()
    path.write_bytes(whole[: min(cut, len(whole))])
    found = [entry.raw for entry in opened(path)[1]]
    complete = path.read_bytes().count(b"\n")
    # a cut inside the hex digits leaves a last line that the pool cannot decode
    assert found[: complete - 1] == raws[: max(complete - 1, 0)]
    journal.close()


def test_the_extension_writes_the_same_lines() -> None:
    raws = [legacy_transaction(DEV_KEYS[0], nonce) for nonce in range(3)]
    transactions = [one for one in decode_transactions(raws) if not isinstance(one, str)]
    assert journal_lines(transactions, 1000_500) == lines(JournalEntry(raw, 1000.5) for raw in raws)
    assert journal_lines([], 5) == b""


def test_an_empty_journal_waits_for_no_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forced: list[int] = []
    force = os.fdatasync
    monkeypatch.setattr(os, "fdatasync", lambda handle: (forced.append(handle), force(handle)))
    journal, found = opened(tmp_path / "journal")
    assert (found, forced) == ([], [])
    assert (tmp_path / "journal").read_bytes() == b""
    journal.append(lines([JournalEntry(b"\x01", 1.0)]))
    journal.sync()
    assert len(forced) == 1
    journal.rewrite([JournalEntry(b"\x02", 2.0)])
    journal.close()
    assert len(forced) == 2


def test_a_line_that_did_not_fit_on_the_disk_spoils_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "journal"
    journal, _ = opened(path)
    write = os.write

    def full(file: int, data: bytes) -> int:
        if len(data) < 10:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(file, data[:8])

    monkeypatch.setattr("ophion.pool.journal.os.write", full)
    for _ in range(3):
        with pytest.raises(StorageError, match="Cannot write .*: No space left on device"):
            journal.append(lines([JournalEntry(b"\x01" * 4, 1.0)]))
    # the node logs the error only once
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert "No space left on device" in caplog.text
    monkeypatch.undo()
    for number in (2, 3):
        journal.append(lines([JournalEntry(bytes([number]), float(number))]))
    assert [entry.raw for entry in opened(path)[1]][-2:] == [b"\x02", b"\x03"]


def test_a_new_file_that_is_not_on_disk_does_not_replace_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal, _ = opened(path)
    journal.append(lines([JournalEntry(b"\x01", 1.0)]))
    job = journal.sync_job()
    assert job is not None
    journal.rewrite([])
    job()
    assert path.with_name("journal.new").exists()
    assert path.read_bytes() == lines([JournalEntry(b"\x01", 1.0)])
    journal.sync()
    assert path.read_bytes() == b""


def test_a_disk_that_fails_is_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal, _ = opened(tmp_path / "journal")
    journal.append(lines([JournalEntry(b"\x01", 1.0)]))

    def broken(file: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("ophion.pool.journal.os.fdatasync", broken)
    with pytest.raises(StorageError, match="Cannot write .*: Input/output error"):
        journal.sync()


def test_large_entries_are_written_anew_by_the_job_one_after_the_other(tmp_path: Path) -> None:
    """64 MB of entries took 0.5 s on the event loop and 244 MB of memory."""
    path = tmp_path / "journal"
    journal, _ = opened(path)
    raws = [bytes([number]) * 300_000 for number in range(1, 11)]
    read: list[int] = []

    def entries() -> Iterator[JournalEntry]:
        for raw in raws:
            yield JournalEntry(raw, 1.0)
            read.append(raw[0])

    journal.rewrite(entries())
    assert len(read) <= 3
    journal.append(lines([JournalEntry(b"\x0f", 2.0)]))
    assert path.read_bytes() == b"", "the old file stays until the new one is complete"
    journal.sync()
    assert len(read) == 10
    assert journal.is_wasteful(1_000_000)
    assert not journal.is_wasteful(2_000_000)
    journal.close()
    found = opened(path)[1]
    assert sorted(entry.raw for entry in found) == sorted([*raws, b"\x0f"])


def test_a_full_disk_while_the_file_is_written_anew_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal"
    journal, _ = opened(path)
    entries = [JournalEntry(bytes([number]) * 300_000, 1.0) for number in range(1, 11)]
    journal.append(lines(entries))
    journal.sync()
    journal.rewrite(entries)
    write, written = os.write, 0

    def full(file: int, data: bytes) -> int:
        nonlocal written
        if written > 1_000_000:
            raise OSError(errno.ENOSPC, "No space left on device")
        written += (count := write(file, data[:700_000]))
        return count

    monkeypatch.setattr("ophion.pool.journal.os.write", full)
    with pytest.raises(StorageError, match="No space left on device"):
        journal.sync()
    monkeypatch.undo()
    assert path.with_name("journal.new").exists()
    journal.append(lines([JournalEntry(b"\x0f", 2.0)]))
    journal.sync()
    assert not path.with_name("journal.new").exists()
    journal.close()
    found = opened(path)[1]
    assert {entry.raw for entry in found} == {*(entry.raw for entry in entries), b"\x0f"}
