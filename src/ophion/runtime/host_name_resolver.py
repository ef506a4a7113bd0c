"""`HostNames`: addresses of host names in enode URLs, resolved in threads.

A lookup may block for half a minute. So each lookup runs in its own thread, which does not delay the end of the
process. A name that does not resolve keeps its last address.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from msgspec import Struct

from ophion.primitives.enode import Enode, socket_ip
from ophion.runtime.clock import Clock
from ophion.runtime.topic import Topic

log = logging.getLogger(__name__)

REFRESH_INTERVAL_S: Final = 5.0
"""Seconds between two lookups of a host name."""
MIN_INTERVAL_S: Final = 1.0
"""Minimum seconds between two lookups of a name after failed connections."""
MAX_LOOKUPS: Final = 16
"""Limit of concurrent lookups. Each lookup has a thread."""
_MAX_HOSTS_FILE_BYTES: Final = 1 << 20

Lookup: TypeAlias = Callable[[str], Sequence[str]]
"""Returns the addresses of a name. Raises `OSError` if the name has no address. Called in a thread."""


class _Name(Struct):
    due: float
    address: str = ""
    is_running: bool = False
    is_reported: bool = False
    has_failed: bool = False
    """Whether a connection to the address has failed since the last lookup."""


class HostNames:
    """Names and their current addresses. Used on the event loop only."""

    def __init__(self, clock: Clock, lookup: Lookup, *, is_updated: bool = True) -> None:
        """Create the table of names. With `is_updated`, a name is resolved again from time to time even if it has an
        address.
        """
        self._clock = clock
        self._lookup = lookup
        self._is_updated = is_updated
        self._names: dict[str, _Name] = {}
        self._wake = asyncio.Event()
        self.changed: Topic[str] = Topic()
        """Published with a name when its address has changed."""

    def add(self, nodes: Iterable[Enode]) -> None:
        """Resolve the names of these nodes from now on."""
        for node in nodes:
            if node.host:
                self.add_name(node.host)

    def add_name(self, name: str) -> None:
        """Resolve a name from now on."""
        if name not in self._names:
            self._names[name] = _Name(self._clock.monotonic())
            self._wake.set()

    def names_at(self, address: str) -> list[str]:
        """Return the resolved names that have this address now."""
        return [name for name, found in self._names.items() if found.address == address]

    def resolve(self, node: Enode) -> Enode:
        """Return the node at its current address, and resolve its name from now on. The address is empty while the name
        does not resolve.
        """
        if not node.host:
            return node
        self.add((node,))
        return node.at(self._names[node.host].address)

    def failed(self, name: str) -> None:
        """Resolve a name again soon, because a connection to its address has failed."""
        found = self._names.get(name)
        if found is not None and not found.has_failed:
            found.has_failed = True
            found.due = min(found.due, self._clock.monotonic() + MIN_INTERVAL_S)
            self._wake.set()

    async def run(self) -> None:
        """Resolve names until cancelled."""
        while True:
            self._wake.clear()
            self._start_due()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._pause()):
                    await self._wake.wait()

    def _start_due(self) -> None:
        now = self._clock.monotonic()
        free = MAX_LOOKUPS - sum(one.is_running for one in self._names.values())
        for name, found in sorted(self._names.items(), key=lambda item: item[1].due):
            if free > 0 and self._is_wanted(found) and found.due <= now:
                free -= 1
                found.is_running = True
                work = LookupThread(name, self._lookup, asyncio.get_running_loop(), self._finished)
                threading.Thread(target=work.run, name=f"lookup of {name}", daemon=True).start()

    def _is_wanted(self, found: _Name) -> bool:
        return not found.is_running and (self._is_updated or not found.address)

    def _pause(self) -> float | None:
        """Seconds until the next lookup. None means that `run` waits for a change or the end of a lookup."""
        if sum(one.is_running for one in self._names.values()) >= MAX_LOOKUPS:
            return None
        due = min((one.due for one in self._names.values() if self._is_wanted(one)), default=None)
        return None if due is None else max(due - self._clock.monotonic(), 0.0)

    def _finished(self, name: str, addresses: Sequence[str], problem: str) -> None:
        found = self._names[name]
        found.is_running = False
        found.due = self._clock.monotonic() + REFRESH_INTERVAL_S
        self._wake.set()
        if not addresses:
            if not found.is_reported:
                found.is_reported = True
                log.warning(
                    "host name does not resolve name=%s reason=%s retry_after_s=%g", name, problem, REFRESH_INTERVAL_S
                )
            return
        chosen = _choose(addresses, found.address, found.has_failed)
        found.has_failed = found.is_reported = False
        if chosen != found.address:
            log.info("host name resolved name=%s address=%s", name, chosen)
            found.address = chosen
            self.changed.publish(name)


class LookupThread(Struct, frozen=True):
    """One host name lookup in a thread."""

    name: str
    lookup: Lookup
    loop: asyncio.AbstractEventLoop
    finished: Callable[[str, Sequence[str], str], None]

    def run(self) -> None:
        addresses: Sequence[str] = ()
        problem = "no address"
        try:
            addresses = self.lookup(self.name)
        except (OSError, ValueError) as error:
            problem = (error.strerror if isinstance(error, OSError) else None) or str(error)
        with contextlib.suppress(RuntimeError):  # the event loop may be closed
            self.loop.call_soon_threadsafe(self.finished, self.name, addresses, problem)


def _choose(addresses: Sequence[str], current: str, has_failed: bool) -> str:
    """Return the current address while it is valid and reachable, otherwise the next address."""
    if current not in addresses:
        return addresses[0]
    return addresses[(addresses.index(current) + has_failed) % len(addresses)]


def system_lookup(name: str) -> Sequence[str]:
    """Look a name up with the system's resolver; IPv4 addresses first."""
    found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    addresses = dict.fromkeys(socket_ip(str(address[0])) for *_, address in found)
    return sorted(addresses, key=lambda address: ":" in address)


def hosts_entries(path: Path) -> list[list[str]]:
    """Return the entries of a file in the format of /etc/hosts: an address, then its names."""
    with path.open("rb") as file:
        content = file.read(_MAX_HOSTS_FILE_BYTES).decode(errors="replace")
    entries = (line.partition("#")[0].split() for line in content.splitlines())
    return [entry for entry in entries if len(entry) > 1]


def hosts_file_lookup(path: Path, fallback: Lookup = system_lookup) -> Lookup:
    """Return a lookup function that searches a file in the format of /etc/hosts, and calls `fallback` if the file does
    not have the name.
    """

    def lookup(name: str) -> Sequence[str]:
        found = [socket_ip(entry[0]) for entry in hosts_entries(path) if name in map(str.lower, entry[1:])]
        return found or fallback(name)

    return lookup
