"""Tests votes of a node that shares its key with no other node."""

from __future__ import annotations

import asyncio

from ophion.consensus.bft.vote_record import VoteRecord
from ophion.producer.shared_vote_store import MemoryVoteStore

X, Y = b"\x01" * 32, b"\x02" * 32


def test_the_first_of_two_conflicting_votes_is_kept() -> None:
    async def story() -> None:
        votes = MemoryVoteStore(VoteRecord(4, 2, Y))
        assert await votes.promise(VoteRecord(4, 1, X)) == VoteRecord(4, 2, Y)
        assert await votes.promise(VoteRecord(5, 0, X)) is None
        assert await votes.promise(VoteRecord(5, 0, X)) is None
        assert await votes.promise(VoteRecord(5, 0, Y)) == VoteRecord(5, 0, X)
        votes.close()

    asyncio.run(story())
