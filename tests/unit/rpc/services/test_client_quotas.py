"""Tests limits on the number and bytes of objects per client and in total."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ophion.rpc.services.client_quotas import ClientQuotas


def test_one_client_takes_its_share_and_all_take_all() -> None:
    quotas = ClientQuotas(max_count=4, max_count_per_client=2, max_bytes=100, max_bytes_per_client=60)
    for client in ("a", "a", "b"):
        assert quotas.fits_total(10)
        assert quotas.fits_client(client, 10)
        quotas.keep(client, 10)
    assert not quotas.fits_client("a", 1), "two of two"
    assert not quotas.fits_client("b", 51), "more bytes than one may have"
    assert quotas.fits_client("c", 60)
    assert not quotas.fits_total(71), "more bytes than all may have"
    quotas.keep("c", 10)
    assert not quotas.fits_total(1), "four of four"
    quotas.drop("a", 10)
    assert quotas.fits_total(1)
    assert quotas.fits_client("a", 1)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 40), st.booleans()), max_size=60))
def test_what_is_dropped_was_never_there(steps: list[tuple[str, int, bool]]) -> None:
    quotas, objects = ClientQuotas(10, 4, 200, 100), list[tuple[str, int]]()
    for client, size, wants in steps:
        if wants and quotas.fits_total(size) and quotas.fits_client(client, size):
            quotas.keep(client, size)
            objects.append((client, size))
        elif objects:
            quotas.drop(*objects.pop(0))
        assert len(objects) <= 10
        assert sum(size for _, size in objects) <= 200
    for one in objects:
        quotas.drop(*one)
    assert len(quotas) == 0
    assert quotas.fits_total(200)
