"""Tests the choice of the wire profile."""

from __future__ import annotations

import pytest

from ophion.consensus.bft.client_profiles import WireProfile, chosen_profile, hides_round
from ophion.consensus.bft_form_choices import WireProfileChoice

OLD = "besu/v25.12.0/linux-x86_64/openjdk-java-21"
NEW = "besu/v26.1.0/linux-x86_64/openjdk-java-21"
NEWER = "besu/v27.0-develop-ab12/linux-x86_64"
QUORUM = "Geth/v1.10.3-stable(quorum-v24.4.1)/linux-amd64/go1.26.8"
OURS = "Ophion/v0.1.0/linux-x86_64/python3.11"


@pytest.mark.parametrize(
    ("clients", "profile"),
    [
        ([], WireProfile.CLASSIC),
        ([OURS, OURS], WireProfile.CLASSIC),
        ([NEW], WireProfile.BAL),
        ([NEW, NEWER, OURS], WireProfile.BAL),
        ([NEW, OLD], WireProfile.CLASSIC),
        ([NEW, "something/else"], WireProfile.CLASSIC),
        (["besu/v3.0.0"], WireProfile.CLASSIC),
    ],
)
def test_auto_writes_the_slot_only_where_all_others_want_it(clients: list[str], profile: WireProfile) -> None:
    assert chosen_profile(WireProfileChoice.AUTO, clients) is profile


def test_a_configured_profile_is_used_with_all_peers() -> None:
    assert chosen_profile(WireProfileChoice.BAL, [OLD]) is WireProfile.BAL
    assert chosen_profile(WireProfileChoice.CLASSIC, [NEW]) is WireProfile.CLASSIC


@pytest.mark.parametrize(
    ("clients", "hides"),
    [
        ([], False),
        ([OURS], False),
        ([QUORUM], True),
        ([QUORUM, OURS, QUORUM], True),
        ([QUORUM, OLD], False),
        ([QUORUM, OURS, "besu/v24.5.4/linux-x86_64/openjdk-java-17"], True),
        ([QUORUM, "besu/v24.10.0/linux-x86_64", OLD], False),
        ([QUORUM, "besu/v24.12.0/linux-x86_64"], False),
        ([QUORUM, "besu/v21.1.3/linux-x86_64"], False),
        (["besu/v24.5.4/linux-x86_64/openjdk-java-17"], False),
        ([OLD], False),
        (["Geth/v1.13.15-stable/linux-amd64/go1.21"], False),
    ],
)
def test_the_round_of_a_block_is_hidden_only_where_goquorum_needs_it_and_all_others_allow_it(
    clients: list[str], hides: bool
) -> None:
    assert hides_round(clients) is hides
