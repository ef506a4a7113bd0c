"""Exports to an S3-compatible server, and to a server that fails during the export."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

import pytest

from ophion.data.export_target import RemoteTarget, open_target
from ophion.errors import CommandError

moto_server = pytest.importorskip("moto.server", reason="moto is not installed")
pytest.importorskip("s3fs", reason="s3fs is not installed")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    # these are public test credentials, because the server accepts any credentials
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    import s3fs

    s3fs.S3FileSystem.clear_instance_cache()
    # create the bucket only once, because buckets outlive the server process
    s3fs.S3FileSystem().makedirs("tables", exist_ok=True)
    yield server
    server.stop()


@pytest.fixture
def bucket(server: Any) -> str:
    return "s3://tables/chain"


def test_objects_are_whole_or_absent(bucket: str) -> None:
    target = open_target(bucket)
    assert isinstance(target, RemoteTarget)
    content = bytes(range(256)) * 4096

    def fill(file: IO[bytes]) -> None:
        file.write(content)

    def break_off(file: IO[bytes]) -> None:
        file.write(content)
        raise CommandError("the scan failed")

    path = "logs/from=00000000/part-00000000-00000009.parquet"
    written = target.write(path, fill)
    assert target.checksum(path) == written
    assert target.list("logs") == [path]
    with pytest.raises(CommandError, match="the scan failed"):
        target.write("logs/from=00000000/part-00000010-00000019.parquet", break_off)
    assert target.list("logs") == [path]
    assert target.read("_manifest.json") is None
    target.delete(path)
    assert target.list("logs") == []


def test_a_missing_bucket_is_one_error(bucket: str) -> None:
    with pytest.raises(CommandError, match="s3://elsewhere/chain/part"):
        open_target("s3://elsewhere/chain").write("part", lambda file: None)


def test_a_server_that_fails_half_way_leaves_no_object(
    server: Any, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server stops while a file is written. The export reports one error, and the server has only the first
    file.
    """
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    target = open_target(bucket)
    host, port = server.get_host_and_port()
    first, second = (f"logs/from=00000000/part-{at}.parquet" for at in (1, 2))
    target.write(first, lambda file: _fill(file))

    def stop_server(file: IO[bytes]) -> None:
        _fill(file)
        server.stop()

    with pytest.raises(CommandError, match=r"s3://tables/chain/logs/.*part-2.parquet: Could not connect"):
        target.write(second, stop_server)
    again = moto_server.ThreadedMotoServer(ip_address=host, port=port)
    again.start()
    try:
        # the first file is still there, because stored objects outlive the server
        assert open_target(bucket).list("logs") == [first]
    finally:
        again.stop()


def _fill(file: IO[bytes]) -> None:
    file.write(bytes(range(256)) * 4096)
