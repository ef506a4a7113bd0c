"""Tests network names of the public vectors."""

from __future__ import annotations

import pytest

from ophion.chainspec.forks import Milestone
from ophion.vectors.networks import milestone_named, network_spec


@pytest.mark.parametrize(
    ("name", "number", "timestamp", "merged", "milestone"),
    [
        ("Frontier", 0, 0, False, Milestone.FRONTIER),
        ("EIP158", 3, 0, False, Milestone.SPURIOUS),
        ("ConstantinopleFix", 1, 0, False, Milestone.PETERSBURG),
        ("Paris", 1, 0, True, Milestone.PARIS),
        ("Merge", 1, 0, True, Milestone.PARIS),
        ("Osaka", 1, 0, True, Milestone.OSAKA),
        ("FrontierToHomesteadAt5", 4, 0, False, Milestone.FRONTIER),
        ("FrontierToHomesteadAt5", 5, 0, False, Milestone.HOMESTEAD),
        ("ByzantiumToConstantinopleFixAt5", 5, 0, False, Milestone.PETERSBURG),
        ("BerlinToLondonAt5", 4, 0, False, Milestone.BERLIN),
        ("ArrowGlacierToParisAtDiffC0000", 9, 0, False, Milestone.ARROW_GLACIER),
        ("ArrowGlacierToParisAtDiffC0000", 9, 0, True, Milestone.PARIS),
        ("ParisToShanghaiAtTime15k", 9, 14_999, True, Milestone.PARIS),
        ("ParisToShanghaiAtTime15k", 9, 15_000, True, Milestone.SHANGHAI),
        ("ShanghaiToCancunAtTime15k", 9, 14_999, True, Milestone.SHANGHAI),
        ("CancunToPragueAtTime15k", 9, 15_000, True, Milestone.PRAGUE),
        ("BPO1ToBPO2AtTime15k", 9, 15_000, True, Milestone.BPO2),
    ],
)
def test_names_say_which_fork_is_active_where(
    name: str, number: int, timestamp: int, merged: bool, milestone: Milestone
) -> None:
    spec = network_spec(name, {})
    assert spec is not None
    assert spec.fork_at(number, timestamp, merged).milestone is milestone


def test_the_dao_fork_and_the_terminal_difficulty_are_points_of_their_own() -> None:
    dao = network_spec("HomesteadToDaoAt5", {})
    merge = network_spec("ArrowGlacierToParisAtDiffC0000", {})
    assert dao is not None
    assert merge is not None
    assert dao.dao_fork_block == 5
    assert merge.terminal_total_difficulty == 0xC0000


@pytest.mark.parametrize("name", ["", "Atlantis", "FrontierToAtlantisAt5", "AtlantisToFrontierAt5", "BerlinAt5"])
def test_unknown_names_are_no_network(name: str) -> None:
    assert network_spec(name, {}) is None


def test_newer_vectors_bring_chain_id_and_blob_schedule() -> None:
    schedule = {"Cancun": {"target": "0x01", "max": "0x02", "baseFeeUpdateFraction": "0x10"}}
    spec = network_spec("Cancun", {"chainid": "0x05", "blobSchedule": schedule})
    assert spec is not None
    assert spec.chain_id == 5
    blobs = spec.fork_at(1, 0).blobs
    assert blobs is not None
    assert (blobs.target, blobs.max, blobs.fee_fraction) == (1, 2, 16)


def test_a_fork_name_is_a_milestone_or_nothing() -> None:
    assert milestone_named("EIP150") is Milestone.TANGERINE
    assert milestone_named("Atlantis") is None
