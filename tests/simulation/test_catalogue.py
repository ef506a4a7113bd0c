"""Checks that each scenario and test vector of consensus.md 6 and 7 has a test with its name."""

from __future__ import annotations

import re

import pytest

from tests.conftest import ROOT

SCENARIOS = {
    "C-01": "n=1, empty chain",
    "C-02": "n=3 all up",
    "C-03": "n=3, one signer killed",
    "C-04": "n=3, two killed",
    "C-05": "n=4, two killed",
    "C-06": "n=2, restart one",
    "C-07": "partition 2/2 of n=4",
    "C-08": "partition 3/2 of n=5",
    "C-09": "two out-of-turn blocks of equal total difficulty",
    "C-10": "equal total difficulty with the least number of signers",
    "C-11": "double signing",
    "C-12": "blocks that break a rule",
    "C-13": "snapshot scenarios",
    "C-14": "votes across an epoch boundary",
    "C-15": "removal of the in-turn signer",
    "C-16": "vote chains on which clients differ",
    "C-17": "clock ahead",
    "C-18": "clock behind",
    "C-19": "late joiner, several epochs",
    "C-20": "mixed network",
    "C-21": "no empty blocks",
    "C-22": "deep reorganisation across an epoch block and a change of signers",
    "C-23": "unsorted genesis list",
    "C-24": "COINBASE instruction and fees",
    "I-01": "n=1",
    "I-02": "n=4 all up",
    "I-03": "n=4, one crashed",
    "I-04": "n=4, two crashed",
    "I-05": "restart of all after a long stall",
    "I-06": "proposer crashes after its proposal",
    "I-07": "restart with a locked block",
    "I-08": "partition 2/2",
    "I-09": "partition 3/1",
    "I-10": "two proposals in one round",
    "I-11": "bad proposals",
    "I-12": "messages that break a rule",
    "I-13": "proposals of round 1 without justification",
    "I-14": "messages delayed beyond the time-out",
    "I-15": "duplication, replay, reordering",
    "I-16": "messages of later heights",
    "I-17": "clock skew",
    "I-18": "time-out not above the period",
    "I-19": "validator added by vote",
    "I-20": "current proposer removed by vote",
    "I-21": "epoch boundary with half-collected votes",
    "I-22": "late joiner as validator",
    "I-23": "non-validator in the middle",
    "I-24": "transitions",
    "I-25": "different subsets of seals",
    "I-26": "mixed wire profiles",
    "I-27": "signatures of other forms",
    "Q-01": "proposal before the block timer",
    "Q-02": "round time-out after the period",
    "Q-03": "block prepared in round 1, proposed again in round 2",
    "Q-04": "round changes with conflicting digests",
    "Q-05": "new block in a later round by another builder",
    "Q-06": "validators by contract",
    "Q-07": "from headers to contract and back",
    "Q-08": "empty block period",
    "Q-09": "from IBFT 2.0 to QBFT",
    "Q-10": "mixed profiles",
    "Q-11": "drop vote written in two ways",
    "X-01": "capitals in genesis files",
    "X-02": "London at block k",
    "X-03": "zero base fee, transactions that pay nothing",
    "X-04": "killed during import",
    "X-05": "signer metrics",
}

GOLDEN = {
    "7.1": ["rinkeby_block_30000", "a_change_of_any_byte"],
    "7.2": ["real_headers_hash", "a_change_of_any_byte", "the_prepare_of_the_original_client"],
    "7.3": ["extra_data_with_vote_and_seals", "genesis_extra_data"],
    "7.4": [
        "the_three_hashes_of_a_header",
        "a_header_with_three_seals",
        "prepare_by_k2",
        "commit_by_k2",
        "proposal_of_round_0_by_k4",
        "proposal_of_round_1_by_k2",
        "unprepared_round_change_by_k2",
        "prepared_round_change_by_k2",
    ],
}
"""Subjects of the test vectors by section. Sections 7.3 and 7.4 exist for both protocols, in test_ibft2_messages.py and
test_qbft_messages.py.
"""


def names() -> set[str]:
    """Return all test functions of the repository."""
    files = (ROOT / "tests").rglob("test_*.py")
    return {name for path in files for name in re.findall(r"^def (test_\w+)\(", path.read_text(), re.MULTILINE)}


NAMES = names()


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_each_scenario_has_a_test_of_its_name(scenario: str) -> None:
    marked = re.compile(rf"_{scenario.lower().replace('-', '_')}_")
    assert any(marked.search(name) for name in NAMES), f"{scenario}: {SCENARIOS[scenario]}"


def test_no_test_names_a_scenario_that_does_not_exist() -> None:
    named = {f"{kind.upper()}-{number}" for name in NAMES for kind, number in re.findall(r"_([ciqx])_(\d\d)_", name)}
    assert named == set(SCENARIOS)


@pytest.mark.parametrize(("section", "about"), [(section, about) for section in GOLDEN for about in GOLDEN[section]])
def test_each_golden_vector_has_a_test_of_its_name(section: str, about: str) -> None:
    start = f"test_golden_{section.replace('.', '_')}_"
    assert any(name.startswith(start) and about in name for name in NAMES)
