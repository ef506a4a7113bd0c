from __future__ import annotations

import pytest

from ophion.peers.rlpx.capability import Capability, find, negotiate

ETH68 = Capability("eth", 68, 17, ("Status", "NewBlockHashes"))
ETH69 = Capability("eth", 69, 18)
IBF = Capability("IBF", 1, 4)
ISTANBUL = Capability("istanbul", 100, 22)
SNAP = Capability("snap", 1, 8)


def ranges(*offered: Capability, remote: list[tuple[str, int]] | None = None) -> dict[str, tuple[int, int]]:
    pairs = [(one.name, one.version) for one in offered] if remote is None else remote
    return {str(one.capability): (one.offset, one.end - 1) for one in negotiate(offered, pairs)}


def test_the_table_of_shared_sets() -> None:
    assert ranges(ETH68) == {"eth/68": (0x10, 0x20)}
    assert ranges(ETH68, IBF) == {"IBF/1": (0x10, 0x13), "eth/68": (0x14, 0x24)}
    assert ranges(ISTANBUL, ETH68) == {"eth/68": (0x10, 0x20), "istanbul/100": (0x21, 0x36)}
    assert ranges(ISTANBUL, ETH69) == {"eth/69": (0x10, 0x21), "istanbul/100": (0x22, 0x37)}
    assert ranges(SNAP, ETH68) == {"eth/68": (0x10, 0x20), "snap/1": (0x21, 0x28)}


def test_of_each_name_the_highest_common_version_counts() -> None:
    assert ranges(ETH68, ETH69, remote=[("eth", 69), ("eth", 68), ("eth", 70)]) == {"eth/69": (0x10, 0x21)}
    assert ranges(ETH69, ETH68, remote=[("eth", 68), ("eth", 66)]) == {"eth/68": (0x10, 0x20)}


def test_what_only_one_side_has_takes_no_ids() -> None:
    assert ranges(ETH68, IBF, remote=[("eth", 68), ("snap", 1)]) == {"eth/68": (0x10, 0x20)}
    assert ranges(ETH68, remote=[("les", 4)]) == {}


def test_an_id_belongs_to_one_capability_or_to_none() -> None:
    shared = negotiate([ETH68, IBF], [("eth", 68), ("IBF", 1)])
    owners = {message_id: find(shared, message_id) for message_id in (0x0F, 0x10, 0x13, 0x14, 0x24, 0x25)}
    assert {key: None if one is None else one.capability.name for key, one in owners.items()} == {
        0x0F: None,
        0x10: "IBF",
        0x13: "IBF",
        0x14: "eth",
        0x24: "eth",
        0x25: None,
    }


def test_messages_have_names() -> None:
    assert ETH68.message_name(1) == "NewBlockHashes"
    assert ETH68.message_name(16) == "0x10"


def test_a_version_fits_one_byte() -> None:
    with pytest.raises(ValueError, match="not a capability"):
        Capability("eth", 256, 17)
