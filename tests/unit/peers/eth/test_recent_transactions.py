"""What nobody's copy is looked at again of, and for how long."""

from __future__ import annotations

import asyncio

from ophion.peers.eth.recent_transactions import AGAIN_S, RecentTransactions
from ophion.runtime.clock import ManualClock
from ophion.testing.virtual_loop import run_virtually

ONE, TWO = b"\x01" * 32, b"\x02" * 32


def test_what_was_refused_for_now_may_come_again_after_a_while() -> None:
    async def story() -> None:
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

    run_virtually(story(), ManualClock())


def test_what_had_to_leave_may_come_again_at_once() -> None:
    judged = RecentTransactions(100)
    judged.add(ONE)
    judged.discard(ONE)
    assert ONE not in judged
    judged.add(TWO)
    judged.clear()
    assert TWO not in judged
