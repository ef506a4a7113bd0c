"""Tests the choice of the wire profile."""

from __future__ import annotations

import pytest

from ophion.consensus.bft.client_profiles import Profile, ProfileChoice, chosen_profile, hides_round

OLD = "besu/v25.12.0/linux-x86_64/openjdk-java-21"
NEW = "besu/v26.1.0/linux-x86_64/openjdk-java-21"
NEWER = "besu/v27.0-develop-ab12/linux-x86_64"
QUORUM = "Geth/v1.10.3-stable(quorum-v24.4.1)/linux-amd64/go1.26.8"
OURS = "Ophion/v0.1.0/linux-x86_64/python3.11"


@pytest.mark.parametrize(
    ("clients", "profile"),
    [
        ([], Profile.CLASSIC),
        ([OURS, OURS], Profile.CLASSIC),
        ([NEW], Profile.BAL),
        ([NEW, NEWER, OURS], Profile.BAL),
        ([NEW, OLD], Profile.CLASSIC),
        ([NEW, "something/else"], Profile.CLASSIC),
        (["besu/v3.0.0"], Profile.CLASSIC),
    ],
)
def test_auto_writes_the_slot_only_where_all_others_want_it(clients: list[str], profile: Profile) -> None:
    assert chosen_profile(ProfileChoice.AUTO, clients) is profile


def test_a_configured_profile_is_used_with_all_peers() -> None:
    assert chosen_profile(ProfileChoice.BAL, [OLD]) is Profile.BAL
    assert chosen_profile(ProfileChoice.CLASSIC, [NEW]) is Profile.CLASSIC


@pytest.mark.parametrize(
    ("clients", "hides"),
    [
        ([], False),
        ([OURS], False),
        ([QUORUM], True),
        ([QUORUM, OURS, QUORUM], True),
        ([QUORUM, OLD], False),
        ([OLD], False),
        (["Geth/v1.13.15-stable/linux-amd64/go1.21"], False),
    ],
)
def test_the_round_of_a_block_is_hidden_only_where_all_others_want_it(clients: list[str], hides: bool) -> None:
    assert hides_round(clients) is hides
