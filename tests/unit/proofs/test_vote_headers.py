"""Tests the search for headers with votes."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from ophion.consensus.engine import Vote
from ophion.errors import ProofError
from ophion.proofs.builder import account_bundle
from ophion.proofs.vote_headers import vote_headers
from ophion.testing.bft_chain import KEYS
from tests.unit.proofs.chains import genesis_text, imported

VOTES = {number: Vote(KEYS[4].address, True) for number in (2, 3, 4)}


def test_the_search_ends_when_the_client_does_not_wait(tmp_path: Path) -> None:
    with imported(tmp_path, genesis_text("qbft", 4), 36, VOTES) as chain:
        assert len(vote_headers(chain, chain.head)) == 3
        checks = count()
        with pytest.raises(ProofError, match="cancelled"):
            vote_headers(chain, chain.head, lambda: next(checks) == 2)
        assert next(checks) == 3, "nothing is read afterwards"
        with pytest.raises(ProofError, match="cancelled"):
            account_bundle(chain, 36, {}, False, lambda: True)
