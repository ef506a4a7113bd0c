from __future__ import annotations

import pytest

from ophion.peers.policy.addresses import is_public, is_within, read_subnet


def test_an_address_lies_in_a_subnet_of_its_kind() -> None:
    subnets = [read_subnet("10.1.0.0/16"), read_subnet("fd00::/8"), read_subnet("192.168.7.9")]
    assert is_within("10.1.200.3", subnets)
    assert is_within("fd12::1", subnets)
    assert is_within("192.168.7.9", subnets)
    assert not is_within("10.2.0.1", subnets)
    assert not is_within("192.168.7.8", subnets)
    assert not is_within("::1", subnets)


def test_no_list_allows_everything() -> None:
    assert is_within("8.8.8.8", [])


def test_host_bits_do_not_matter() -> None:
    assert str(read_subnet("10.1.2.3/16")) == "10.1.0.0/16"


@pytest.mark.parametrize("text", ["", "10.0.0.0/33", "home", "10.0.0/8", "1.2.3.4/x"])
def test_an_invalid_subnet_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="is not a subnet"):
        read_subnet(text)


def test_which_addresses_are_public() -> None:
    assert is_public("8.8.8.8")
    assert is_public("2001:4860:4860::8888")
    for ours in ("127.0.0.1", "10.0.0.1", "192.168.1.1", "172.16.0.1", "169.254.1.1", "::1", "fd00::1"):
        assert not is_public(ours)
