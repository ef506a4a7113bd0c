"""SQL queries pass their conditions to the scan."""

from __future__ import annotations

from pathlib import Path

import pytest

from ophion import Chain
from ophion.data.data_frames import open_chain
from ophion.data.datasets import ALL
from ophion.data.selection import Rows
from ophion.data.sql import Bounds, bounds_of, connect, run_queries
from ophion.errors import CommandError, OphionError

ADDRESS, TOPIC = "AB" * 20, "CD" * 32


@pytest.mark.parametrize(
    ("condition", "dataset", "expected"),
    [
        ("", "logs", Bounds(0, 99, Rows())),
        ("((block_number >= 3) and (block_number < 9))", "logs", Bounds(3, 8, Rows())),
        ("(block_number == 7)", "traces", Bounds(7, 7, Rows())),
        ("((block_number > 3) and (block_number > 5))", "blocks", Bounds(6, 99, Rows())),
        (f'((block_number <= 4) and (address == "{ADDRESS}"))', "logs", Bounds(0, 4, Rows((b"\xab" * 20,)))),
        (f'(erc20 == "{ADDRESS}")', "erc20_transfers", Bounds(0, 99, Rows((b"\xab" * 20,)))),
        (f'(topic1 == "{TOPIC}")', "logs", Bounds(0, 99, Rows(topics=(None, (b"\xcd" * 32,))))),
        (f'(from_address == "{ADDRESS}")', "transactions", Bounds(0, 99, Rows(senders=(b"\xab" * 20,)))),
        (f'(from_address == "{ADDRESS}")', "erc20_transfers", Bounds(0, 99, Rows())),
        (f'((block_number > 3) or (address == "{ADDRESS}"))', "logs", Bounds(0, 99, Rows())),
        ("invert((block_number > 3))", "logs", Bounds(0, 99, Rows())),
        ("(block_number != 3)", "logs", Bounds(0, 99, Rows())),
    ],
)
def test_only_conjunctions_narrow_a_scan(condition: str, dataset: str, expected: Bounds) -> None:
    assert bounds_of(condition, ALL[dataset], 99) == expected


def test_a_scan_that_fails_is_one_error_without_a_traceback(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    with Chain(tmp_path / "data", chain_id=77) as made:
        made.mine()
    failures: list[OphionError] = []
    with open_chain(tmp_path / "data") as chain:
        connection = connect(chain, failures)
        for _ in range(2):
            with pytest.raises(CommandError, match=r"^The dataset traces needs the genesis file") as caught:
                list(run_queries(connection, "select * from traces", failures))
            assert "Traceback" not in str(caught.value)
        with pytest.raises(CommandError, match=r"^SQL: .*missing"):
            list(run_queries(connection, "select missing from blocks", failures))
