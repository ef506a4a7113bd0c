"""Few large requests run at a time, in order of arrival."""

from __future__ import annotations

from ophion.rpc.dispatch.large_requests import LargeRequests


def test_a_few_are_at_work_and_the_next_begins_when_one_has_ended() -> None:
    heavy, begun = LargeRequests(most=2), list[str]()
    for name in "abcd":
        heavy.enter(lambda name=name: begun.append(name))  # type: ignore[misc]
    assert (begun, len(heavy)) == (["a", "b"], 4)
    heavy.leave()
    assert (begun, len(heavy)) == (["a", "b", "c"], 3)
    for _ in range(3):
        heavy.leave()
    assert (begun, len(heavy)) == (["a", "b", "c", "d"], 0)


def test_a_cancelled_request_is_skipped() -> None:
    heavy, begun = LargeRequests(most=1), list[str]()
    jobs = [lambda name=name: begun.append(name) for name in "abc"]  # type: ignore[misc]
    for job in jobs:
        heavy.enter(job)
    assert heavy.give_up(jobs[1])
    assert not heavy.give_up(jobs[1])
    assert not heavy.give_up(jobs[0]), "it has begun"
    heavy.leave()
    assert begun == ["a", "c"]
