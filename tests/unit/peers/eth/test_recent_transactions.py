"""Tests recently submitted transactions and temporary rejections."""

from __future__ import annotations

import asyncio

from ophion.peers.eth.recent_transactions import AGAIN_S, RecentTransactions
from ophion.runtime.clock import ManualClock
from ophion.testing.virtual_loop import run_virtually

ONE, TWO = b"\x01" * 32, b"\x02" * 32


def test_a_temporary_rejection_expires() -> None:
    async def scenario() -> None:
        judged = RecentTransactions(100)
        for hash, reason in ((ONE, "not-authorized"), (TWO, "malformed")):
            judged.add(hash)
            judged.refused(hash, reason)
        assert ONE in judged
        assert TWO in judged
        await asyncio.sleep(AGAIN_S + 1)
        assert ONE not in judged
        assert TWO in judged
        judged.refused(ONE, "upfront-cost")
        await asyncio.sleep(AGAIN_S + 1)
        assert ONE not in judged

    run_virtually(scenario(), ManualClock())


def test_an_evicted_transaction_is_accepted_again_at_once() -> None:
    judged = RecentTransactions(100)
    judged.add(ONE)
    judged.discard(ONE)
    assert ONE not in judged
    judged.add(TWO)
    judged.clear()
    assert TWO not in judged


def test_several_transactions_are_recent_if_one_of_them_is() -> None:
    async def scenario() -> None:
        judged = RecentTransactions(100)
        assert judged.has_none([ONE, TWO])
        judged.update([ONE])
        assert not judged.has_none([ONE, TWO])
        assert judged.has_none([TWO])
        judged.refused(ONE, "not-authorized")
        assert not judged.has_none([ONE])

    run_virtually(scenario(), ManualClock())
