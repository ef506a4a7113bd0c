"""Tests the names of networks."""

from __future__ import annotations

import pytest

from ophion.chainspec.dev_network import dev_genesis
from ophion.chainspec.forks import Milestone
from ophion.chainspec.network_names import DEV_FORKS, PUBLIC_NETWORKS, check_network
from ophion.errors import GenesisError


@pytest.mark.parametrize("name", sorted(PUBLIC_NETWORKS))
def test_public_networks_are_refused_in_one_line(name: str) -> None:
    with pytest.raises(GenesisError, match=f"^Network {name} is a public network") as caught:
        check_network(name)
    assert "\n" not in str(caught.value)


def test_dev_is_found_by_name_and_others_are_unknown() -> None:
    check_network("DEV")
    with pytest.raises(GenesisError, match="Unknown network moonnet"):
        check_network("moonnet")


@pytest.mark.parametrize("name", DEV_FORKS)
def test_each_fork_of_the_dev_network_is_active_from_genesis(name: str) -> None:
    assert dev_genesis(name).spec.fork_at(0, 0).milestone is Milestone[name.upper()]
