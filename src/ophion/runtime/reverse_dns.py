"""`ReverseNames`: host names of IP addresses, looked up in threads and kept for a minute.

A name counts only if it resolves to the address again, because the owner of an address chooses its reverse entry.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections import Counter
from collections.abc import Sequence
from ipaddress import ip_network
from pathlib import Path
from typing import Final

from msgspec import Struct

from ophion.primitives.enode import is_host_name, socket_ip
from ophion.runtime.clock import Clock
from ophion.runtime.host_name_resolver import Lookup, LookupThread, hosts_entries, system_lookup

MAX_ADDRESSES: Final = 1024
"""Maximum number of addresses that are kept. Unknown peers choose the addresses, so addresses without a name are
evicted first.
"""
MAX_LOOKUPS: Final = 16
"""Maximum number of concurrent lookups. Each lookup has a thread."""
MAX_UNKNOWN_LOOKUPS: Final = 12
"""Maximum number of concurrent lookups of addresses without a name. Unknown peers may have slow name servers."""
MAX_NAMES: Final = 4
"""Maximum number of names of one address."""
LIFETIME_S: Final = 60.0
_IPV4_NETWORK_BITS, _IPV6_NETWORK_BITS = 24, 48
_TRANSIENT: Final = frozenset((2, 3, socket.EAI_AGAIN, socket.EAI_FAIL))
"""Error numbers for a name server that does not answer: TRY_AGAIN (2) and NO_RECOVERY (3) of gethostbyaddr, EAI_AGAIN
and EAI_FAIL of getaddrinfo.
"""
_UNAVAILABLE: Final = ("",)
"""Result of a lookup whose name server does not answer."""


class NameServerUnavailable(OSError):
    """A name server does not answer, so the names are unknown."""


class _Address(Struct):
    network: str
    due: float
    names: tuple[str, ...] = ()
    is_running: bool = False


class ReverseNames:
    """Names by address. Used on the event loop only.

    Of the addresses without a known name, only one per network is looked up at a time. The other addresses wait in
    order.
    """

    def __init__(self, clock: Clock, lookup: Lookup) -> None:
        """Create an empty cache. `lookup` returns the names of an address and is called in a thread."""
        self._clock = clock
        self._lookup = lookup
        self._addresses: dict[str, _Address] = {}
        self._waiting: dict[str, None] = {}
        self._networks: Counter[str] = Counter()
        """Number of running lookups of addresses without a known name, by network."""
        self._running: dict[str, str | None] = {}
        """Network of each address whose lookup is running. None for an address with a known name."""

    def names_at(self, address: str) -> tuple[str, ...]:
        """Return the known names of an address, and start a lookup if they are missing or outdated. An unknown address
        has no names until its lookup has ended.
        """
        now = self._clock.monotonic()
        found = self._addresses.get(address)
        if found is None:
            if len(self._addresses) >= MAX_ADDRESSES:
                self._evict()
            found = self._addresses[address] = _Address(_network(address), now)
        if found.due <= now and not found.is_running and address not in self._waiting:
            self._waiting[address] = None
            self._start()
        return found.names

    def _evict(self) -> None:
        """Remove the oldest address without a name from the cache. If all addresses have names, remove the oldest
        address.
        """
        oldest = next(iter(self._addresses))
        victim = next((address for address, one in self._addresses.items() if not one.names), oldest)
        del self._addresses[victim]
        self._waiting.pop(victim, None)

    def _start(self) -> None:
        """Start the lookups that wait, in order, as far as the limits permit."""
        for address in tuple(self._waiting):
            if len(self._running) >= MAX_LOOKUPS:
                return
            found = self._addresses[address]
            is_busy = self._networks[found.network] > 0 or self._networks.total() >= MAX_UNKNOWN_LOOKUPS
            # skip an address that was evicted and added again while its earlier lookup still runs
            if address in self._running or (not found.names and is_busy):
                continue
            del self._waiting[address]
            found.is_running = True
            self._running[address] = None if found.names else found.network
            if not found.names:
                self._networks[found.network] += 1
            work = LookupThread(address, self._look, asyncio.get_running_loop(), self._finished)
            threading.Thread(target=work.run, name=f"lookup of {address}", daemon=True).start()

    def _look(self, address: str) -> Sequence[str]:
        try:
            return self._lookup(address)
        except NameServerUnavailable:
            return _UNAVAILABLE

    def _finished(self, address: str, names: Sequence[str], problem: str) -> None:
        network = self._running.pop(address, None)
        if network is not None:
            self._networks[network] -= 1
            if not self._networks[network]:
                del self._networks[network]
        found = self._addresses.get(address)
        if found is not None:
            found.is_running = False
            found.due = self._clock.monotonic() + LIFETIME_S
            if names is not _UNAVAILABLE:
                found.names = tuple(names[:MAX_NAMES])
        self._start()


def _network(address: str) -> str:
    """Return the network of an address, which usually has one owner and one name server."""
    try:
        bits = _IPV6_NETWORK_BITS if ":" in address else _IPV4_NETWORK_BITS
        return str(ip_network(f"{address}/{bits}", strict=False))
    except ValueError:
        return address


def system_reverse_lookup(address: str) -> Sequence[str]:
    """Look up the names of an address with the system's resolver. Raises `NameServerUnavailable`."""
    try:
        name, aliases, _ = socket.gethostbyaddr(address)
        return _confirmed(address, (name, *aliases), system_lookup)
    except (socket.herror, socket.gaierror) as error:
        if error.errno in _TRANSIENT:
            raise NameServerUnavailable(error.errno, error.strerror) from None
        raise


def hosts_file_reverse_lookup(path: Path) -> Lookup:
    """Return a lookup function that searches a file in the format of /etc/hosts, and asks the system if the file does
    not have the address.
    """

    def lookup(address: str) -> Sequence[str]:
        found = [name for entry in hosts_entries(path) if socket_ip(entry[0]) == address for name in entry[1:]]
        return [name.lower() for name in found if is_host_name(name)] or system_reverse_lookup(address)

    return lookup


def _confirmed(address: str, names: Sequence[str], lookup: Lookup) -> list[str]:
    """Return the names that resolve to the address again. Raises `OSError` if a name server does not answer before any
    name is confirmed.
    """
    found = []
    for name in dict.fromkeys(one.lower().rstrip(".") for one in names[:MAX_NAMES]):
        try:
            if is_host_name(name) and address in lookup(name):
                found.append(name)
        except OSError as error:
            if not found and error.errno in _TRANSIENT:
                raise
    return found
