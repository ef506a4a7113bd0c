"""A wrong genesis file of a proof-of-authority network gives one clear error before the node writes any file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ophion.cli.rlp import ExtraDataType, extra_data
from ophion.testing.node_process import NodeProcess
from tests.conftest import ROOT
from tests.integration.command import Finished, ophion

EXAMPLES = ROOT / "examples"


def example(engine: str) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(
        (EXAMPLES / ("clique" if engine == "clique" else "ibft2") / "genesis.json").read_text()
    )
    if engine == "qbft":
        values["config"]["qbft"] = values["config"].pop("ibft2")
    return values


def start(tmp_path: Path, values: dict[str, Any]) -> Finished:
    (tmp_path / "genesis.json").write_text(json.dumps(values))
    done = ophion(
        f"--genesis-file={tmp_path / 'genesis.json'}", f"--data-path={tmp_path / 'data'}", "--p2p-enabled=false",
        timeout_s=120,
    )  # fmt: skip
    assert not (tmp_path / "data").exists(), "nothing is made for a network that cannot be"
    return done


ENGINES = pytest.mark.parametrize("engine", ["clique", "ibft2", "qbft"])


@ENGINES
@pytest.mark.parametrize("extra", ["0x", "0x1234", "0x" + "00" * 32, "0x" + "11" * 200])
def test_bad_extra_data(tmp_path: Path, engine: str, extra: str) -> None:
    values = example(engine)
    values["extraData"] = extra
    start(tmp_path, values).failed("Invalid extraData in genesis block configuration: 0x")


@pytest.mark.parametrize(
    ("engine", "extra"),
    [
        ("clique", "00" * 97),
        ("ibft2", "e6a0" + "00" * 32 + "c0" + "80" + "8400000000" + "c0"),
        ("qbft", "e5a0" + "00" * 32 + "c0" + "c0" + "80" + "c0"),
    ],
)
def test_no_members(tmp_path: Path, engine: str, extra: str) -> None:
    values = example(engine)
    if engine != "clique":
        # correct the first byte, which holds the length of the RLP list
        body = bytes.fromhex(extra)[1:]
        extra = bytes([0xC0 + len(body)]).hex() + body.hex()
    values["extraData"] = "0x" + extra
    start(tmp_path, values).failed("needs at least one")


@ENGINES
@pytest.mark.parametrize(("key", "name"), [("blockPeriodSeconds", "period"), ("epochLength", "epoch")])
def test_zero_period_and_zero_epoch(tmp_path: Path, engine: str, key: str, name: str) -> None:
    values = example(engine)
    section = values["config"][engine]
    section.pop(name, None)
    section[key] = 0
    start(tmp_path, values).failed(
        f"Invalid config.{engine}.{key.lower()} in genesis block configuration: 0 (must be at least 1)"
    )


def test_a_request_timeout_of_zero(tmp_path: Path) -> None:
    values = example("ibft2")
    values["config"]["ibft2"]["requestTimeoutSeconds"] = 0
    start(tmp_path, values).failed("Invalid config.ibft2.requesttimeoutseconds")


def test_periods_that_contradict_each_other(tmp_path: Path) -> None:
    values = example("clique")
    values["config"]["clique"] = {"blockPeriodSeconds": 2, "period": 3}
    start(tmp_path, values).failed("blockperiodseconds says 2")


@pytest.mark.parametrize("transition", [{"block": 0, "blockPeriodSeconds": 2}, {"block": 5, "blockPeriodSeconds": 0}])
@ENGINES
def test_transitions_that_cannot_be(tmp_path: Path, engine: str, transition: dict[str, int]) -> None:
    values = example(engine)
    values["config"]["transitions"] = {engine: [transition]}
    start(tmp_path, values).failed("transitions")


@ENGINES
def test_one_member_twice(tmp_path: Path, engine: str) -> None:
    values = example(engine)
    values["extraData"] = genesis_extra(engine, 2)
    start(tmp_path, values).failed("Invalid extraData in genesis block configuration: 0x")


@pytest.mark.parametrize("engine", ["ibft2", "qbft"])
@pytest.mark.parametrize("listed", [[], ["0x" + "11" * 20] * 2], ids=["nobody", "somebody twice"])
def test_a_transition_to_impossible_validators(tmp_path: Path, engine: str, listed: list[str]) -> None:
    values = example(engine)
    values["extraData"] = genesis_extra(engine)
    values["config"]["transitions"] = {engine: [{"block": 5, "validators": listed}]}
    start(tmp_path, values).failed(
        f"Invalid config.transitions.{engine}[0].validators in genesis block configuration: "
    )


@ENGINES
@pytest.mark.parametrize("value", ["soon", -1], ids=str)
def test_a_period_that_is_none(tmp_path: Path, engine: str, value: object) -> None:
    values = example(engine)
    values["config"][engine].pop("period", None)
    values["config"][engine]["blockPeriodSeconds"] = value
    start(tmp_path, values).failed(f"Invalid config.{engine}.blockperiodseconds in genesis block configuration: ")


@ENGINES
def test_unknown_keys_are_named_in_a_warning(tmp_path: Path, engine: str) -> None:
    """The warning names unknown keys at every depth, spelled like in the file. The node still starts."""
    values = example(engine)
    values["extraData"] = genesis_extra(engine)
    values["gasLimitt"] = 1
    values["config"]["londnBlock"] = 1
    values["config"][engine]["blokPeriodSeconds"] = 7
    values["config"]["transitions"] = {
        engine: [{"block": 5, "blockPeriodSeconds": 2, "epochLenght": 3}],
        "Clicque": [],
    }
    (tmp_path / "genesis.json").write_text(json.dumps(values))
    with NodeProcess(tmp_path / "data", f"--genesis-file={tmp_path / 'genesis.json'}") as node:
        assert node.stop() == 0
        (warning,) = [line for line in node.output().splitlines() if "Unknown members" in line]
    for path in (
        "gasLimitt",
        "config.londnBlock",
        f"config.{engine}.blokPeriodSeconds",
        f"config.transitions.{engine}[0].epochLenght",
        "config.transitions.Clicque",
    ):
        assert path in warning, warning


def genesis_extra(engine: str, times: int = 1) -> str:
    """Return the extra data of a network whose only validator is listed `times` times."""
    members = [b"\x11" * 20] * times
    if engine == "clique":
        return "0x" + (bytes(32) + b"".join(members) + bytes(65)).hex()
    kind = ExtraDataType.IBFT_EXTRA_DATA if engine == "ibft2" else ExtraDataType.QBFT_EXTRA_DATA
    return "0x" + extra_data(members, kind).hex()
