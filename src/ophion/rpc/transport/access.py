"""The host allow-list and the allowed origins of a service (json-rpc.md 1.6, 1.7).

The host list protects against DNS rebinding: a web page can send requests to its own host name after that name resolves
to this machine, but it cannot change the `Host` header. Every service checks the header first, on every path.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Final

ANY: Final = frozenset({"*", "all"})
NONE: Final = "none"

_HOST: Final = re.compile(r"([^:]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?", re.IGNORECASE)
"""A host name or address with an optional port; IPv6 addresses are in brackets."""


def in_brackets(host: str) -> str:
    """Return a host as a `Host` header writes it, with IPv6 addresses in brackets."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


class HostList:
    """Host names that clients may use for this service."""

    def __init__(self, names: Sequence[str]) -> None:
        self._allows_any = not ANY.isdisjoint(names)
        self._names = frozenset(in_brackets(name.lower()) for name in names if name != NONE)

    def allows(self, header: bytes | None) -> bool:
        """Return whether a `Host` header is allowed. A missing, empty or malformed header is not."""
        if self._allows_any:
            return True
        form = _HOST.fullmatch((header or b"").decode("latin-1").strip(" \t"))
        return form is not None and form[1].lower() in self._names


class OriginList:
    """Web pages that may call this service: origins as browsers write them, `scheme://host:port`.

    `*` means any page. Within an entry a `*` stands for one part: `http://localhost:*` for any port or none,
    `https://*.example.org` for any name below that one, `chrome-extension://*` for any extension.
    """

    def __init__(self, origins: Sequence[str]) -> None:
        self._allows_any = not ANY.isdisjoint(origins)
        named = [origin.lower().rstrip("/") for origin in origins if origin != NONE and origin not in ANY]
        self._names = frozenset(origin for origin in named if "*" not in origin)
        self._open = [origin for origin in named if "*" in origin]

    @cached_property
    def _pattern(self) -> re.Pattern[str] | None:
        """The compiled pattern of all entries with a `*`; None if there are none."""
        return re.compile("|".join(map(_pattern, self._open))) if self._open else None

    def allows(self, origin: bytes, host: bytes | None = None) -> bool:
        """Return whether an `Origin` header is allowed. `host` is the `Host` header, which `PageOrigins` needs."""
        if self._allows_any:
            return True
        text = origin.decode("latin-1").lower()
        return text in self._names or (self._pattern is not None and self._pattern.fullmatch(text) is not None)


def _pattern(origin: str) -> str:
    """Return a regular expression for an entry with a `*`. Other characters match literally."""
    host, colon, port = origin.rpartition(":")
    if colon and port == "*":
        return _part(host) + "(?::[0-9]{1,5})?"
    return _part(origin)


def _part(text: str) -> str:
    return "[^/:@]+".join(re.escape(piece) for piece in text.split("*"))
