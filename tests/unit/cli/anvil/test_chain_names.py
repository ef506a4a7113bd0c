"""Fork and chain names of Anvil's command line."""

from __future__ import annotations

import pytest

from ophion.chainspec.network_names import DEV_FORKS
from ophion.cli.anvil.chain_names import chain_id, fork_name

NAMES = (
    "frontier homestead dao tangerine spuriousdragon byzantium constantinople petersburg istanbul muirglacier berlin"
    " london arrowglacier grayglacier paris shanghai cancun prague osaka bpo1 bpo2 latest Prague"
)


@pytest.mark.parametrize("name", NAMES.split())
def test_every_fork_name_of_anvil_is_a_fork_of_this_node(name: str) -> None:
    assert fork_name(name) in DEV_FORKS


def test_a_chain_has_a_name_or_a_number() -> None:
    assert chain_id("mainnet") == 1
    assert chain_id("Sepolia") == 11155111
    assert chain_id("31337") == 31337
    assert chain_id("0x7a69") == 31337
    with pytest.raises(ValueError, match="'moon' is neither a number nor a chain name"):
        chain_id("moon")
