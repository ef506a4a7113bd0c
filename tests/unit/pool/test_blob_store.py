"""Tests blobs of pooled transactions."""

from __future__ import annotations

from ophion.pool.blob_store import BlobStore


def test_what_has_waited_longest_goes_first() -> None:
    blobs = BlobStore(max_bytes=250)
    for name in (b"a", b"b", b"c"):
        blobs.put(name, name * 100)
    assert blobs.get(b"a") is None
    assert blobs.get(b"b") == b"b" * 100
    assert (len(blobs), blobs.held) == (2, 200)


def test_the_blobs_of_what_has_left_go() -> None:
    blobs = BlobStore()
    blobs.put(b"a", b"1")
    blobs.put(b"b", b"22")
    blobs.keep({b"b"}.__contains__)
    assert (len(blobs), blobs.held) == (1, 2)
    assert blobs.get(b"a") is None


def test_what_comes_again_counts_once() -> None:
    blobs = BlobStore()
    for _ in range(3):
        blobs.put(b"a", b"22")
    assert (len(blobs), blobs.held) == (1, 2)
