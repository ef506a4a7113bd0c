"""Names of addresses are looked up in threads, kept for a minute, and bounded in number."""

from __future__ import annotations

import asyncio
import socket
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


class HeldNames:
    """A lookup that waits for a slow name server, except for addresses that begin with `10.`."""

    def __init__(self) -> None:
        self.release = threading.Event()
        self.running = 0
        self.most = 0
        self._lock = threading.Lock()

    def __call__(self, address: str) -> Sequence[str]:
        if not address.startswith("10."):
            with self._lock:
                self.running += 1
                self.most = max(self.most, self.running)
            self.release.wait(30)
            with self._lock:
                self.running -= 1
            raise OSError(-2, "Name or service not known")
        return ("a.nodes",)


def test_slow_name_servers_of_unknown_peers_do_not_block_other_lookups() -> None:
    """The owner of an address chooses its name server. One network of addresses has one lookup at a time."""

    async def story() -> None:
        clock, lookup = ManualClock(), HeldNames()
        names = ReverseNames(clock, lookup)
        try:
            await until(lambda: names.names_at("10.0.0.1") == ("a.nodes",))
            for number in range(200):
                names.names_at(f"20.0.0.{number}")
            for number in range(20):
                names.names_at(f"20.1.{number}.1")
            clock.advance(LIFETIME_S + 1)
            assert names.names_at("10.0.0.1") == ("a.nodes",)
            await until(lambda: names._addresses["10.0.0.1"].due > clock.monotonic())
        finally:
            lookup.release.set()
        await until(lambda: lookup.running == 0)

    asyncio.run(story())


def test_a_lookup_that_waits_starts_when_another_ends() -> None:
    async def story() -> None:
        lookup = HeldNames()
        names = ReverseNames(ManualClock(), lookup)
        for number in range(20):
            names.names_at(f"20.1.{number}.1")
        names.names_at("10.0.0.1")
        assert names.names_at("10.0.0.1") == ()
        await until(lambda: lookup.running > 0)
        lookup.release.set()
        await until(lambda: names._addresses["10.0.0.1"].names == ("a.nodes",))

    asyncio.run(story())


def test_addresses_of_unknown_peers_do_not_evict_addresses_with_names() -> None:
    async def story() -> None:
        lookup = HeldNames()
        names = ReverseNames(ManualClock(), lookup)
        try:
            await until(lambda: names.names_at("10.0.0.1") == ("a.nodes",))
            for number in range(5 * MAX_ADDRESSES):
                names.names_at(f"30.{number >> 16}.{number >> 8 & 255}.{number & 255}")
            assert names.names_at("10.0.0.1") == ("a.nodes",)
            assert len(names._addresses) <= MAX_ADDRESSES
            await asyncio.sleep(0.1)
            assert lookup.most <= reverse_dns.MAX_LOOKUPS, "threads of evicted addresses count"
        finally:
            lookup.release.set()
        await until(lambda: lookup.running == 0)

    asyncio.run(story())


def test_names_stay_while_the_name_server_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a network that lists names in its contract would close all connections."""
    is_down = False

    def by_address(address: str) -> tuple[str, list[str], list[str]]:
        if is_down:
            raise socket.herror(2, "Host name lookup failure")
        return ("a.nodes", [], [])

    def by_name(name: str) -> list[str]:
        return ["10.0.0.1"]

    monkeypatch.setattr(reverse_dns.socket, "gethostbyaddr", by_address)
    monkeypatch.setattr(reverse_dns, "system_lookup", by_name)

    async def story() -> None:
        nonlocal is_down
        clock = ManualClock()
        names = ReverseNames(clock, reverse_dns.system_reverse_lookup)
        await until(lambda: names.names_at("10.0.0.1") == ("a.nodes",))
        is_down = True
        clock.advance(LIFETIME_S + 1)
        names.names_at("10.0.0.1")
        await until(lambda: names._addresses["10.0.0.1"].due > clock.monotonic())
        assert names.names_at("10.0.0.1") == ("a.nodes",)

    asyncio.run(story())
