"""`ReverseNames`: host names of IP addresses, looked up in threads and kept for a minute.

A name counts only if it resolves to the address again, because the owner of an address chooses its reverse entry.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from ophion.primitives.enode import is_host_name, socket_ip
from ophion.runtime.clock import Clock
from ophion.runtime.host_name_resolver import Lookup, LookupThread, hosts_entries, system_lookup

MAX_ADDRESSES: Final = 1024
"""Maximum number of addresses that are kept. Unknown peers choose the addresses."""
MAX_LOOKUPS: Final = 4
"""Maximum number of concurrent lookups. Each lookup has a thread."""
MAX_NAMES: Final = 4
"""Maximum number of names of one address."""
LIFETIME_S: Final = 60.0


class _Address(Struct):
    due: float
    names: tuple[str, ...] = ()
    is_running: bool = False


class ReverseNames:
    """Names by address. Used on the event loop only."""

    def __init__(self, clock: Clock, lookup: Lookup) -> None:
        """Create an empty cache. `lookup` returns the names of an address and is called in a thread."""
        self._clock = clock
        self._lookup = lookup
        self._addresses: dict[str, _Address] = {}

    def names_at(self, address: str) -> tuple[str, ...]:
        """Return the known names of an address. An unknown address has none, until a lookup has ended."""
        now = self._clock.monotonic()
        found = self._addresses.get(address)
        if found is None:
            while len(self._addresses) >= MAX_ADDRESSES:
                del self._addresses[next(iter(self._addresses))]
            found = self._addresses[address] = _Address(now)
        running = sum(one.is_running for one in self._addresses.values()) if found.due <= now else 0
        if found.due <= now and not found.is_running and running < MAX_LOOKUPS:
            found.is_running = True
            work = LookupThread(address, self._lookup, asyncio.get_running_loop(), self._finished)
            threading.Thread(target=work.run, name=f"lookup of {address}", daemon=True).start()
        return found.names

    def _finished(self, address: str, names: Sequence[str], problem: str) -> None:
        found = self._addresses.get(address)
        if found is not None:
            found.is_running = False
            found.due = self._clock.monotonic() + LIFETIME_S
            found.names = tuple(names[:MAX_NAMES])


def system_reverse_lookup(address: str) -> Sequence[str]:
    """Look up the names of an address with the system's resolver."""
    name, aliases, _ = socket.gethostbyaddr(address)
    return _confirmed(address, (name, *aliases), system_lookup)


def hosts_file_reverse_lookup(path: Path) -> Lookup:
    """Return a lookup function that searches a file in the format of /etc/hosts, then asks the system."""

    def lookup(address: str) -> Sequence[str]:
        found = [name for entry in hosts_entries(path) if socket_ip(entry[0]) == address for name in entry[1:]]
        return [name.lower() for name in found if is_host_name(name)] or system_reverse_lookup(address)

    return lookup


def _confirmed(address: str, names: Sequence[str], lookup: Lookup) -> list[str]:
    """Return the names that resolve to the address again."""
    found = []
    for name in dict.fromkeys(one.lower().rstrip(".") for one in names[:MAX_NAMES]):
        try:
            if is_host_name(name) and address in lookup(name):
                found.append(name)
        except OSError:
            continue
    return found
