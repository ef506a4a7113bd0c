"""Tests selections of `open_chain`. tests/integration/test_cli_export.py tests the rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ophion import Chain
from ophion.data.data_frames import event_topic, open_chain
from ophion.errors import CommandError, StorageError
from ophion.native.crypto import keccak256


def test_an_event_is_named_by_signature_hash_or_well_known_name() -> None:
    topic = keccak256(b"Transfer(address,address,uint256)")
    assert event_topic("Transfer") == topic
    assert event_topic("Transfer(address, address, uint256)") == topic
    assert event_topic("0x" + topic.hex()) == topic
    assert event_topic("Transfer(address indexed from, address indexed to, uint value)") == topic
    with pytest.raises(CommandError, match="The event 'Minted' has no types"):
        event_topic("Minted")
    for wrong in ("Transfer(address", "Transfer(number)", 5):
        with pytest.raises(CommandError, match="event: "):
            event_topic(wrong)  # type: ignore[arg-type]  # one of them is no text


@pytest.fixture(scope="module")
def data_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("chain") / "data"
    with Chain(path) as chain:
        chain.mine(3)
    return path


WRONG: dict[str, list[Any]] = {
    "blocks": [5, "x", (0,), (1, 2, 3), (None, 5), (1.5, 2), (5, 0), (-1, 5)],
    "address": [5, "0x12", [], [5], b"x"],
    "topics": [5, "x", [[]], [5]],
    "columns": [5, "number", [5], ["missing"]],
    "numbers": [5, "decimal", ["missing"]],
    "missing": [5],
}


@pytest.mark.parametrize(("name", "wrong"), [(name, one) for name, several in WRONG.items() for one in several])
def test_a_wrong_option_of_a_selection_is_one_error(data_path: Path, name: str, wrong: Any) -> None:
    with open_chain(data_path) as chain, pytest.raises(CommandError, match=name.removesuffix("s")):
        chain.logs(**{name: wrong})


def test_a_chain_that_cannot_be_opened_is_one_error(data_path: Path, tmp_path: Path) -> None:
    for wrong in (None, 5, b"x", "a\0b", [], tmp_path / "missing"):
        with pytest.raises((CommandError, StorageError)):
            open_chain(wrong)  # type: ignore[arg-type]  # wrong on purpose


def test_a_missing_genesis_file_is_one_error(data_path: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="the extra ophion[data] is not installed")
    with (
        open_chain(data_path, genesis=tmp_path / "missing.json") as chain,
        pytest.raises(CommandError, match="genesis"),
    ):
        list(chain.traces().batches())


@pytest.mark.parametrize("options", [{}, {"hardfork": "london"}, {"timestamp": 1_800_000_000}], ids=str)
def test_a_chain_of_python_needs_no_genesis_file(tmp_path: Path, options: dict[str, Any]) -> None:
    pytest.importorskip("pyarrow", reason="the extra ophion[data] is not installed")
    with Chain(tmp_path / "data", **options) as made:
        made.accounts[0].transfer(made.accounts[1], 5)
        traced = [one["action"] for one in made.rpc("trace_block", "0x1") if one["type"] == "call"]
    with open_chain(tmp_path / "data") as chain:
        rows = chain.traces(hex=True).to_arrow().to_pylist()
    calls = [one for one in rows if one["action_type"] == "call"]
    assert [(one["action_from"], one["action_gas"]) for one in calls] == [
        (one["from"], int(one["gas"], 16)) for one in traced
    ]


def test_an_unknown_dataset_names_the_known_ones(data_path: Path) -> None:
    with open_chain(data_path) as chain:
        with pytest.raises(
            CommandError, match="There is no dataset 'missing'. Known datasets: blocks, .*events, calls"
        ):
            chain.missing()
        assert not hasattr(chain, "missing")
