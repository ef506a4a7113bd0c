"""Blob gas prices computed from excess blob gas, and the inverse."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ophion.chain.block_environment import excess_for_fee
from ophion.chainspec.forks import BlobParameters
from ophion.consensus.header_rules import blob_base_fee

BLOBS = BlobParameters(6, 9, 5_007_716)


@given(st.integers(1, 10**15))
def test_the_excess_for_a_fee_is_the_least_that_reaches_it(fee: int) -> None:
    excess = excess_for_fee(fee, BLOBS)
    assert blob_base_fee(excess, BLOBS.fee_fraction) >= fee
    assert excess == 0 or blob_base_fee(excess - 1, BLOBS.fee_fraction) < fee
