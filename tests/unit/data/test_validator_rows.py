"""Tests the dataset `validators` on generated chains with votes."""

from __future__ import annotations

from pathlib import Path

import pytest

from ophion.consensus.engine import Vote
from ophion.data.datasets import VALIDATORS
from ophion.data.selection import Format, Rows, columns_of
from ophion.errors import CommandError
from ophion.testing.bft_chain import KEYS
from tests.unit.proofs.chains import genesis_text, imported

pytest.importorskip("pyarrow", reason="the extra ophion[data] is not installed")
from ophion.data.validator_rows import validator_batch

COLUMNS = columns_of(VALIDATORS, Format())
NEW = KEYS[4].address
VOTES = {number: Vote(NEW, True) for number in (2, 3, 4)}


@pytest.mark.parametrize(("protocol", "seals"), [("ibft2", 3), ("qbft", 3), ("clique", 1)])
def test_rows_show_proposer_seals_and_votes(protocol: str, seals: int, tmp_path: Path) -> None:
    with imported(tmp_path, genesis_text(protocol, 4), 8, VOTES) as chain:
        rows = validator_batch(chain, VALIDATORS, COLUMNS, 0, 8, Rows(), False).to_pylist()
        one = validator_batch(chain, VALIDATORS, COLUMNS, 0, 8, Rows((NEW,)), True).to_pylist()
        proposers = {number: chain.engine.author(chain.canonical(number)) for number in range(1, 9)}  # type: ignore[arg-type]
    by_block = {number: [row for row in rows if row["block_number"] == number] for number in range(9)}
    assert [len(by_block[number]) for number in range(9)] == [0, 4, 4, 4, 4, 5, 5, 5, 5]
    for number, found in by_block.items():
        assert {row["n_validators"] for row in found} <= {len(found)}
        assert [row["address"] for row in found if row["is_proposer"]] == ([proposers[number]] if number else [])
        quorum = seals if len(found) < 5 or seals == 1 else 4
        assert sum(row["has_sealed"] for row in found) == (quorum if number else 0)
        voted = [(row["vote_address"], row["vote_adds"]) for row in found if row["vote_address"] is not None]
        assert voted == ([(NEW, True)] if number in VOTES else [])
        assert {row["round"] for row in found} <= ({None} if protocol == "clique" else {0})
    assert [row["block_number"] for row in one] == [5, 6, 7, 8]
    assert one[0]["address"] == "0x" + NEW.hex()


def test_a_network_without_validators_is_refused(tmp_path: Path) -> None:
    from tests.unit.rpc.interface import open_interface

    with open_interface(tmp_path) as interface, pytest.raises(CommandError, match="this network runs ethash"):
        validator_batch(interface.node.chain, VALIDATORS, COLUMNS, 1, 0, Rows(), False)
