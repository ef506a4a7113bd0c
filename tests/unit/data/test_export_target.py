"""A file appears complete or not at all."""

from __future__ import annotations

import errno
import resource
import threading
import zlib
from pathlib import Path
from typing import IO

import pytest

from ophion.data.export_target import DirectoryTarget, RemoteTarget, Written, open_target
from ophion.data.task_threads import TaskThreads
from ophion.errors import CommandError


def hello(file: IO[bytes]) -> None:
    file.write(b"hello")


def test_a_file_is_written_with_its_checksum(tmp_path: Path) -> None:
    target = open_target(f"file://{tmp_path / 'tables'}")
    written = target.write("logs/part", hello)
    assert (written.size, written.crc32) == (5, f"{zlib.crc32(b'hello'):08x}")
    assert target.checksum("logs/part") == written
    assert target.read("logs/part") == b"hello"
    assert target.read("logs/other") is None
    assert target.checksum("logs/other") is None
    target.delete("logs/part")
    assert target.read("logs/part") is None


def test_a_full_disk_is_one_error_and_leaves_no_file(tmp_path: Path) -> None:
    target = DirectoryTarget(tmp_path)

    def fill(file: IO[bytes]) -> None:
        file.write(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    target.write("logs/part", hello)
    with pytest.raises(CommandError, match="the disk is full. Files that were finished before are complete"):
        target.write("logs/part", fill)
    assert (tmp_path / "logs" / "part").read_bytes() == b"hello"
    assert [path.name for path in tmp_path.rglob("*")] == ["logs", "part"]


def test_unfinished_files_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / ".unfinished-part").write_bytes(b"half")
    DirectoryTarget(tmp_path)
    assert not list((tmp_path / "logs").iterdir())


def test_a_file_in_place_of_the_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tables").write_text("")
    with pytest.raises(CommandError, match="Unable to write"):
        DirectoryTarget(tmp_path / "tables")


def test_a_url_is_written_through_fsspec() -> None:
    pytest.importorskip("fsspec", reason="the extra ophion[data] is not installed")
    target = open_target("memory://ophion/tables")
    assert isinstance(target, RemoteTarget)
    written = target.write("logs/part", hello)
    assert target.checksum("logs/part") == written
    assert target.read("logs/part") == b"hello"
    assert target.read("none") is None

    def fill(file: IO[bytes]) -> None:
        file.write(b"half")
        raise CommandError("the scan failed")

    with pytest.raises(CommandError, match="the scan failed"):
        target.write("logs/other", fill)
    assert target.read("logs/other") is None
    target.delete("logs/part")
    assert target.read("logs/part") is None
    with pytest.raises(CommandError, match="Unable to use nothing://"):
        open_target("nothing://bucket/tables")


def test_a_missing_bucket_is_one_error() -> None:
    fsspec = pytest.importorskip("fsspec", reason="the extra ophion[data] is not installed")

    class NoBucket(fsspec.get_filesystem_class("memory")):  # type: ignore[misc]
        """A store that refuses requests to a missing bucket, like S3."""

        protocol = "s3"

        def glob(self, path: str) -> list[str]:
            raise FileNotFoundError("The specified bucket does not exist")

        def _open(self, path: str, mode: str = "rb", **options: object) -> IO[bytes]:
            raise FileNotFoundError("The specified bucket does not exist")

    fsspec.register_implementation("nobucket", NoBucket, clobber=True)
    target = open_target("nobucket://missing/tables")
    assert target.list("logs") == []
    with pytest.raises(CommandError, match="nobucket://missing/tables/logs/part: the bucket or folder does not exist"):
        target.write("logs/part", hello)


def test_several_threads_upload_at_the_same_time() -> None:
    pytest.importorskip("fsspec", reason="the extra ophion[data] is not installed")
    target = open_target("memory://ophion/together")
    count = 4
    for attempt in range(8):
        all_begin = threading.Barrier(count)

        def upload(path: str, all_begin: threading.Barrier = all_begin) -> Written:
            unfinished = target.create(path)
            unfinished.file.write(path.encode() * 200_000)
            all_begin.wait()
            return unfinished.publish()

        paths = [f"logs/{attempt}-{number}" for number in range(count)]
        with TaskThreads(count, "upload") as threads:
            tasks = [threads.submit(lambda path=path: upload(path)) for path in paths]  # type: ignore[misc]
        for path, task in zip(paths, tasks, strict=True):
            assert target.checksum(path) == task.result()
            target.delete(path)


def test_a_full_disk_during_an_upload_is_one_error() -> None:
    pytest.importorskip("fsspec", reason="the extra ophion[data] is not installed")
    unfinished = open_target("memory://ophion/full").create("logs/part")
    unfinished.file.write(bytes(4000))  # in the buffer of the local file
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(CommandError, match="Unable to write .*: File too large"):
            unfinished.publish()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_nobody_sees_a_file_before_it_is_published(tmp_path: Path) -> None:
    target = DirectoryTarget(tmp_path)
    unfinished = target.create("logs/from=00000000/part-1.parquet")
    unfinished.file.write(b"hello")
    assert target.list("logs") == []
    assert unfinished.publish() == target.checksum("logs/from=00000000/part-1.parquet")
    assert target.list("logs") == ["logs/from=00000000/part-1.parquet"]
    discarded = target.create("logs/from=00000000/part-2.parquet")
    discarded.file.write(b"hello")
    discarded.discard()
    assert [path.name for path in tmp_path.rglob("*part*")] == ["part-1.parquet"]
