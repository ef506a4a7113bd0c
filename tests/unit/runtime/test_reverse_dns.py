"""Names of addresses are looked up in threads, kept for a minute, and bounded in number."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from ophion.runtime import reverse_dns
from ophion.runtime.clock import ManualClock
from ophion.runtime.reverse_dns import LIFETIME_S, MAX_ADDRESSES, ReverseNames, hosts_file_reverse_lookup
from ophion.testing.wait_for import until


class Names:
    """A lookup with prepared answers."""

    def __init__(self) -> None:
        self.names: Sequence[str] = ("a.nodes",)
        self.asked = 0

    def __call__(self, address: str) -> Sequence[str]:
        assert threading.current_thread() is not threading.main_thread()
        self.asked += 1
        if not self.names:
            raise OSError(-2, "Name or service not known")
        return self.names


def test_a_name_is_known_after_its_lookup_and_looked_up_again_later() -> None:
    async def story() -> None:
        clock, lookup = ManualClock(), Names()
        names = ReverseNames(clock, lookup)
        assert names.names_at("10.0.0.1") == ()
        await until(lambda: names.names_at("10.0.0.1") == ("a.nodes",))
        assert lookup.asked == 1
        lookup.names = ()
        clock.advance(LIFETIME_S + 1)
        await until(lambda: names.names_at("10.0.0.1") == ())
        assert lookup.asked == 2

    asyncio.run(story())


def test_unknown_addresses_do_not_use_up_memory() -> None:
    async def story() -> None:
        names = ReverseNames(ManualClock(), Names())
        for number in range(MAX_ADDRESSES + 10):
            names.names_at(f"10.0.{number >> 8}.{number & 255}")
        assert len(names._addresses) == MAX_ADDRESSES

    asyncio.run(story())


def test_a_hosts_file_is_asked_first(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text("10.0.0.1 Validator-1.nodes validator-1 # text\n10.0.0.2 other\n")
    assert hosts_file_reverse_lookup(file)("10.0.0.1") == ["validator-1.nodes", "validator-1"]


def test_a_name_must_resolve_to_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """The owner of an address chooses its reverse entry, so the name alone proves nothing."""
    found = {"true.nodes": ["10.0.0.1"], "bank.example": ["10.9.9.9"]}
    answer = ("True.Nodes.", ["bank.example", "no name!"], [])
    monkeypatch.setattr(reverse_dns.socket, "gethostbyaddr", lambda address: answer)
    monkeypatch.setattr(reverse_dns, "system_lookup", lambda name: found[name])
    assert reverse_dns.system_reverse_lookup("10.0.0.1") == ["true.nodes"]
