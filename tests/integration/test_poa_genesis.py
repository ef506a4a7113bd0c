"""A wrong genesis file of a proof-of-authority network: one clear error before anything is made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

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
        timeout_s=30,
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
        # lengths by hand are easily wrong: count the items again
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
def test_unknown_keys_are_named_in_a_warning(tmp_path: Path, engine: str) -> None:
    """The node starts, so the warning is looked for in the output of one that is stopped by a wrong key file."""
    values = example(engine)
    if engine == "qbft":
        values["config"] = {**values["config"], "validatorContract": 1}
    values["config"][engine]["blokPeriodSeconds"] = 7
    if engine == "qbft":
        address = values["extraData"].split("d594")[1][:40]
        values["extraData"] = "0xf83aa0" + "00" * 32 + "d594" + address + "c080c0"
    (tmp_path / "genesis.json").write_text(json.dumps(values))
    (tmp_path / "key").write_text("no key")
    done = ophion(
        f"--genesis-file={tmp_path / 'genesis.json'}",
        f"--data-path={tmp_path / 'data'}",
        f"--node-private-key-file={tmp_path / 'key'}",
        timeout_s=30,
    )
    assert done.code == 1
    said = done.out + done.err
    assert f"config.{engine}.blokPeriodSeconds" in said, said
