"""Who may talk to a service at all: the host allow-list and the allowed origins (json-rpc.md 1.6, 1.7).

The host list guards against DNS rebinding: a page in a browser can make a request to a name that its owner points at
this machine, but it cannot choose another `Host` header. It is checked first, on every path and every service.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Final

ANY: Final = frozenset({"*", "all"})
NONE: Final = "none"

_HOST: Final = re.compile(r"([^:]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?", re.IGNORECASE)
"""A name or an address, and a port; addresses of IPv6 stand in brackets, as their colons are none of a port."""


def in_brackets(host: str) -> str:
    """A name or an address as a `Host` header has it."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


class HostList:
    """Names under which this service may be addressed."""

    def __init__(self, names: Sequence[str]) -> None:
        self._allows_any = not ANY.isdisjoint(names)
        self._names = frozenset(in_brackets(name.lower()) for name in names if name != NONE)

    def allows(self, header: bytes | None) -> bool:
        """Whether a `Host` header is welcome; an absent, empty or malformed one is not."""
        if self._allows_any:
            return True
        form = _HOST.fullmatch((header or b"").decode("latin-1").strip(" \t"))
        return form is not None and form[1].lower() in self._names


class OriginList:
    """Pages that may call this service from a browser: origins as browsers write them, `scheme://host:port`.

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
        """What the others must look like; made for the first page that comes."""
        return re.compile("|".join(map(_pattern, self._open))) if self._open else None

    def allows(self, origin: bytes, host: bytes | None = None) -> bool:
        """Whether an `Origin` header is welcome; nothing is when no origins are configured. `host` is for pages."""
        if self._allows_any:
            return True
        text = origin.decode("latin-1").lower()
        return text in self._names or (self._pattern is not None and self._pattern.fullmatch(text) is not None)


def _pattern(origin: str) -> str:
    """A regular expression for an entry with a `*`; everything else in it is meant as it stands."""
    host, colon, port = origin.rpartition(":")
    if colon and port == "*":
        return _part(host) + "(?::[0-9]{1,5})?"
    return _part(origin)


def _part(text: str) -> str:
    return "[^/:@]+".join(re.escape(piece) for piece in text.split("*"))
