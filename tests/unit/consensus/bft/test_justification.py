"""Certificates need enough messages, each by another author."""

from __future__ import annotations

import pytest

from ophion.consensus.bft.justification import check_authors
from ophion.consensus.bft.messages import Unjustified

A, B, C = (bytes((index,)) * 20 for index in (1, 2, 3))


def test_enough_different_authors_pass() -> None:
    check_authors((A, B, C), 3, "prepares")
    check_authors((A, B, C), 2, "prepares")


def test_too_few_and_repeated_authors_do_not() -> None:
    with pytest.raises(Unjustified, match="2 prepares where 3 are needed"):
        check_authors((A, B), 3, "prepares")
    with pytest.raises(Unjustified, match="two prepares of one author"):
        check_authors((A, B, A), 2, "prepares")
