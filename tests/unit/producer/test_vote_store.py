"""Tests the durable votes of a validator in a real database: written, read again, and damaged."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from ophion.consensus.bft.durable_votes import DurableVotes
from ophion.consensus.bft.ibft2_messages import Ibft2
from ophion.consensus.bft.qbft_messages import Qbft
from ophion.errors import StorageError
from ophion.native.store import Store, open_store
from ophion.producer.vote_store import DURABLE_VOTES_KEY, VoteStore, without_votes
from ophion.runtime.thread_pools import InlineLanes

VALIDATOR, OTHER = b"\x0a" * 20, b"\x0b" * 20


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = open_store(tmp_path, durable=False)
    yield store
    store.close()


def test_votes_are_known_after_a_restart(store: Store) -> None:
    votes = VoteStore(store, InlineLanes(), VALIDATOR)
    assert votes.is_blank
    assert votes.recall(Qbft()) is None
    asyncio.run(votes.remember(Qbft(), DurableVotes(5)))
    later = VoteStore(store, InlineLanes(), VALIDATOR)
    assert not later.is_blank
    assert later.recall(Qbft()) == DurableVotes(5)
    assert later.recall(Ibft2()) is None, "a height of another protocol is another height"


def test_votes_that_cannot_be_read_stop_the_node(store: Store) -> None:
    store.put_meta(DURABLE_VOTES_KEY, b"qbft\0junk")
    votes = VoteStore(store, InlineLanes(), VALIDATOR)
    with pytest.raises(StorageError, match="stored votes of this validator cannot be read"):
        votes.recall(Qbft())


def test_who_was_restored_has_no_memory(store: Store) -> None:
    votes = VoteStore(store, InlineLanes(), VALIDATOR)
    asyncio.run(votes.remember(Qbft(), DurableVotes(5)))
    store.put_meta(DURABLE_VOTES_KEY, without_votes(store.meta(DURABLE_VOTES_KEY) or b""))
    assert votes.is_blank
    assert votes.recall(Qbft()) is None
    assert votes.other is None
    assert VoteStore(store, InlineLanes(), OTHER).other == f"0x{VALIDATOR.hex()}"


def test_a_database_that_was_copied_holds_the_votes_of_another(store: Store) -> None:
    asyncio.run(VoteStore(store, InlineLanes(), OTHER).remember(Qbft(), DurableVotes(5)))
    votes = VoteStore(store, InlineLanes(), VALIDATOR)
    assert votes.is_blank
    assert votes.recall(Qbft()) is None
    assert votes.other == f"0x{OTHER.hex()}"


def test_a_record_of_an_earlier_version_has_no_address(store: Store) -> None:
    store.put_meta(DURABLE_VOTES_KEY, b"qbft\0" + DurableVotes(5).encode())
    votes = VoteStore(store, InlineLanes(), VALIDATOR)
    assert not votes.is_blank
    assert votes.recall(Qbft()) == DurableVotes(5)


def test_votes_beside_a_shared_store_count_only_with_that_store(store: Store) -> None:
    shared = VoteStore(store, InlineLanes(), VALIDATOR, "etcd:/net")
    assert shared.is_blank
    asyncio.run(shared.remember(Qbft(), DurableVotes(5)))
    assert not shared.is_blank
    assert shared.recall(Qbft()) == DurableVotes(5)
    assert shared.other_shared is None
    for now in (None, "etcd:/other"):
        votes = VoteStore(store, InlineLanes(), VALIDATOR, now)
        assert votes.is_blank
        assert votes.recall(Qbft()) is None
        assert votes.other_shared == "etcd:/net"
        assert votes.other is None
    alone = VoteStore(store, InlineLanes(), VALIDATOR)
    asyncio.run(alone.remember(Qbft(), DurableVotes(6)))
    assert not alone.is_blank
    assert alone.other_shared is None


def test_votes_of_the_database_count_when_a_shared_store_begins(store: Store) -> None:
    asyncio.run(VoteStore(store, InlineLanes(), VALIDATOR).remember(Qbft(), DurableVotes(5)))
    shared = VoteStore(store, InlineLanes(), VALIDATOR, "etcd:/net")
    assert shared.recall(Qbft()) == DurableVotes(5)
    assert shared.other_shared is None


def test_a_restored_database_of_a_shared_store_warns_of_nothing(store: Store) -> None:
    asyncio.run(VoteStore(store, InlineLanes(), VALIDATOR, "etcd:/net").remember(Qbft(), DurableVotes(5)))
    store.put_meta(DURABLE_VOTES_KEY, without_votes(store.meta(DURABLE_VOTES_KEY) or b""))
    votes = VoteStore(store, InlineLanes(), VALIDATOR)
    assert votes.is_blank
    assert votes.other_shared is None
