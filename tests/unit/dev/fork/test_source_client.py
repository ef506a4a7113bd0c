"""The source of a fork reports every failure of its client as an error of the fork."""

from __future__ import annotations

import pytest

from ophion.dev.fork.settings import ForkSettings
from ophion.dev.fork.source_client import ForkSource
from ophion.errors import ForkSourceError


def test_a_source_that_is_away_is_one_error_without_the_secret_part_of_its_address() -> None:
    waits: list[float] = []
    settings = ForkSettings("http://user:secret@127.0.0.1:1/key?token=1", retries=2, headers=("X-Name: value",))
    source = ForkSource(settings, sleep=waits.append)
    with pytest.raises(ForkSourceError, match="does not answer .Connection refused.*Check --fork-url") as caught:
        source.batch([("eth_one", [])])
    assert source.name == "http://127.0.0.1:1"
    assert "secret" not in caught.value.message
    assert "key" not in caught.value.message
    assert (waits, source.requests) == ([1.0, pytest.approx(2.0, abs=0.1)], 3)


def test_only_http_addresses_are_taken() -> None:
    for url in ("ws://127.0.0.1", "127.0.0.1:8545", "http://"):
        with pytest.raises(ForkSourceError, match="must begin with http"):
            ForkSource(ForkSettings(url))
