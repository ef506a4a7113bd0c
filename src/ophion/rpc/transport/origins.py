"""Web pages that may call a service, by their `Origin` header (json-rpc.md 1.7).

A browser sends an `Origin` with every POST, even to the server of the page itself. So the service allows its own
origin: its scheme, one of its host names, and its port.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cached_property

from ophion.rpc.transport.host_allowlist import ANY, NONE


class OriginList:
    """Web pages that may call this service: origins as browsers write them, `scheme://host:port`.

    `*` means any page. Within an entry a `*` matches one part: `http://localhost:*` for any port or none,
    `https://*.example.org` for any subdomain, `chrome-extension://*` for any extension.
    """

    def __init__(self, origins: Sequence[str]) -> None:
        self._allows_any = not ANY.isdisjoint(origins)
        named = [origin.lower().rstrip("/") for origin in origins if origin != NONE and origin not in ANY]
        self._names = frozenset(origin for origin in named if "*" not in origin)
        self._open = [origin for origin in named if "*" in origin]

    @cached_property
    def _pattern(self) -> re.Pattern[str] | None:
        """The compiled pattern of all entries with a `*`; None if there are no such entries."""
        return re.compile("|".join(map(_pattern, self._open))) if self._open else None

    def allows(self, origin: bytes, host: bytes | None = None) -> bool:
        """Return whether an `Origin` header is allowed. `host` is the `Host` header, which `PageOrigins` needs."""
        if self._allows_any:
            return True
        text = origin.decode("latin-1").lower()
        return text in self._names or (self._pattern is not None and self._pattern.fullmatch(text) is not None)


class PageOrigins(OriginList):
    """Allows the configured origins, and the origin of this service, so that the pages it serves can call it."""

    def __init__(
        self, origins: Sequence[str], hosts: Sequence[str], port: Callable[[], int], is_encrypted: bool = False
    ) -> None:
        super().__init__(origins)
        self._scheme, self._default_port = ("https", 443) if is_encrypted else ("http", 80)
        self._hosts = [name.lower() for name in hosts if name not in ANY and name != NONE]
        self._port = port

    def allows(self, origin: bytes, host: bytes | None = None) -> bool:
        """Return whether an `Origin` header is allowed in a request with this `Host` header."""
        if super().allows(origin):
            return True
        text = origin.decode("latin-1").lower()
        return self._is_own(text) or self._is_same_server(text, (host or b"").decode("latin-1").lower())

    def _is_same_server(self, origin: str, host: str) -> bool:
        """Return whether a page calls the server that served it. The port of this service is not compared, because the
        port may be mapped.

        The host must be an IP address or a listed name: an unlisted name could be DNS rebinding.
        """
        name = host.rpartition(":")[0] or host
        is_address = name.startswith("[") or name.replace(".", "").isdigit()
        return origin == f"{self._scheme}://{host}" and (is_address or name in self._hosts)

    def _is_own(self, origin: str) -> bool:
        port = self._port()
        end = "" if port == self._default_port else f":{port}"  # browsers omit the default port in an origin
        return any(origin == f"{self._scheme}://{name}{end}" for name in (*self._hosts, "localhost", "127.0.0.1"))


def _pattern(origin: str) -> str:
    """Return a regular expression for an entry with a `*`. A `*` matches one or more characters except `/`, `:` and
    `@`. `:*` at the end matches any port or none. Other characters match literally.
    """
    host, colon, port = origin.rpartition(":")
    if colon and port == "*":
        return _part(host) + "(?::[0-9]{1,5})?"
    return _part(origin)


def _part(text: str) -> str:
    return "[^/:@]+".join(re.escape(piece) for piece in text.split("*"))
