"""Invariant tests find planted bugs and shorten the sequence of calls that shows a bug."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ophion import Chain
from ophion.sdk.contract import Contract
from ophion.testing.invariants import InvariantBroken, check_invariants
from tests.unit.sdk.contracts import TOKEN


@pytest.fixture
def token() -> Iterator[Contract]:
    with Chain() as chain:
        yield chain.deploy(TOKEN, "Coin", 1000)


def _supply_is_kept(token: Contract) -> bool:
    holders = [*token.chain.accounts[:3], token.address]
    return sum(token.balanceOf(one) for one in holders) == token.totalSupply()


def test_finds_the_planted_bug_and_shortens_the_sequence(token: Contract) -> None:
    def search(chain: Chain) -> tuple[str | None, list[str], str]:
        found = check_invariants(
            chain,
            [token],
            {"supply": lambda: _supply_is_kept(token)},
            seed=1,
            functions=["transfer", "approve", "skim"],
        )
        return found.invariant, [one.function.name for one in found.sequence], str(found)

    name, functions, text = search(token.chain)
    assert name == "supply"
    assert functions == ["skim", "skim", "skim"]
    assert search(token.chain)[2] == text, "the seed replays the search"
    assert token.chain.block_number == 1


def test_a_sound_contract_passes(token: Contract) -> None:
    found = check_invariants(
        token.chain,
        [token],
        {"supply": lambda: _supply_is_kept(token)},
        runs=3,
        depth=10,
        functions=["transfer", "approve", "transferFrom"],
    )
    assert found.invariant is None
    assert found.calls == 30
    found.raise_failure()


def test_a_broken_invariant_fails_the_test(token: Contract) -> None:
    found = check_invariants(token.chain, [token], {"wrong": lambda: False})
    with pytest.raises(InvariantBroken, match="the invariant 'wrong' breaks"):
        found.raise_failure()
