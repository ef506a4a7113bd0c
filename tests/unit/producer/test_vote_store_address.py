"""Tests the value of `--vote-store`."""

from __future__ import annotations

import pytest

from ophion.producer.vote_store_address import VoteStoreAddress, read_vote_store


def test_members_and_prefix_are_read() -> None:
    assert read_vote_store("etcd://a:2379,10.0.0.2:2380/net/one") == VoteStoreAddress(
        ("http://a:2379", "http://10.0.0.2:2380"), "net/one"
    )
    assert read_vote_store("etcd://[::1]:2379").prefix == "ophion"
    assert str(read_vote_store("etcd://a:1,b:2/p/")) == "etcd://a:1,b:2/p"
    encrypted = read_vote_store("etcds://a:1,b:2/p")
    assert encrypted.endpoints == ("https://a:1", "https://b:2")
    assert (encrypted.speaks_tls, str(encrypted)) == (True, "etcds://a:1,b:2/p")


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "http://a:1/p",
            "etcd://",
            "etcd:///p",
            "etcd://a/p",
            "etcd://u:p@a:1/p",
            "etcd://a:x",
            "etcd://a:99999/p",
        ),
        *("etcd://a:0/p", "etcd://a:-1/p", "etcd://[::1:2379/p", "etcd://a:1,/p", "etcd://a b:1/p"),
        *("etcd://a:1/p q", "etcd://a:1/p?x=1", "etcd://a:1/p#x", "etcd://a:1?x=1", "etcd://a:1/\u00e4"),
        *("etcd://a..b:1/p", "etcd://.:1/p", f"etcd://{'h' * 64}:1/p"),
    ],
)
def test_other_values_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a vote store: expected etcd://HOST:PORT"):
        read_vote_store(text)


@pytest.mark.parametrize("members", ["a:1,b:1,a:1", "a:1,A:1", "a:1,a:01"])
def test_a_member_is_named_once(members: str) -> None:
    with pytest.raises(ValueError, match="names a member of the vote store twice"):
        read_vote_store(f"etcd://{members}/p")
