"""A download ends with the whole file, or with an error and a part that can be continued."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from ophion.errors import CheckpointError
from ophion.node.checkpoint.download import MAX_ATTEMPTS, CheckpointDownload
from tests.unit.node.checkpoint.file_server import FileServer, serving

CONTENT = random.Random(7).randbytes(300_000)


@pytest.fixture
def server() -> Iterator[FileServer]:
    with serving(CONTENT) as served:
        yield served


def download(url: str, folder: Path, max_bytes: int = 1 << 30) -> bytes:
    pauses: list[float] = []
    found = CheckpointDownload(url, folder, lambda done, size: None, max_bytes=max_bytes, sleep=pauses.append).run()
    return found.read_bytes()


def test_an_interrupted_download_continues_where_it_ended(server: FileServer, tmp_path: Path) -> None:
    server.cuts = [100_000, 50_000]
    assert download(server.url, tmp_path) == CONTENT
    assert server.ranges == ["", "bytes=100000-", "bytes=150000-"]


def test_another_process_continues_a_download(server: FileServer, tmp_path: Path) -> None:
    server.cuts = [1000] + [0] * MAX_ATTEMPTS
    with pytest.raises(CheckpointError, match="1000 bytes are kept; start the node again to continue"):
        download(server.url, tmp_path)
    server.cuts, server.ranges = [], []
    assert download(server.url, tmp_path) == CONTENT
    assert server.ranges == ["bytes=1000-"]
    assert download(server.url, tmp_path) == CONTENT
    assert len(server.ranges) == 1


def test_a_changed_file_is_fetched_again(server: FileServer, tmp_path: Path) -> None:
    server.cuts = [1000] + [0] * MAX_ATTEMPTS
    with pytest.raises(CheckpointError):
        download(server.url, tmp_path)
    server.cuts, server.etag, server.content = [], '"two"', CONTENT[::-1]
    assert download(server.url, tmp_path) == CONTENT[::-1]


def test_a_part_of_another_address_is_not_continued(server: FileServer, tmp_path: Path) -> None:
    server.cuts = [1000] + [0] * MAX_ATTEMPTS
    with pytest.raises(CheckpointError):
        download(server.url, tmp_path)
    server.cuts, server.ranges = [], []
    assert download(server.url + "?other", tmp_path) == CONTENT
    assert server.ranges == [""]


def test_a_file_without_validator_is_fetched_from_its_start(server: FileServer, tmp_path: Path) -> None:
    server.etag, server.cuts = "", [1000]
    assert download(server.url, tmp_path) == CONTENT
    assert server.ranges == ["", ""]


def test_a_server_need_not_announce_the_size(server: FileServer, tmp_path: Path) -> None:
    server.announces_size = False
    assert download(server.url, tmp_path) == CONTENT


def test_a_busy_server_is_asked_again_and_a_missing_file_is_not(server: FileServer, tmp_path: Path) -> None:
    server.statuses = [503, 429]
    assert download(server.url, tmp_path) == CONTENT
    server.statuses = [404]
    (tmp_path / "other").mkdir()
    with pytest.raises(CheckpointError, match="HTTP status 404"):
        download(server.url, tmp_path / "other")
    assert server.statuses == []


def test_the_size_is_bounded(server: FileServer, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="the archive has 300000 bytes"):
        download(server.url, tmp_path, 1000)
    server.announces_size = False
    with pytest.raises(CheckpointError, match="sends more than 1000 bytes"):
        download(server.url, tmp_path, 1000)


def test_redirects_are_followed(server: FileServer, tmp_path: Path) -> None:
    server.redirect = "/moved.tar"
    assert download(server.url, tmp_path) == CONTENT


def test_a_server_that_is_down_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="the download fails"):
        download("http://127.0.0.1:9/chain.tar", tmp_path)
