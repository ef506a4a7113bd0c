"""The host allow-list of a service (json-rpc.md 1.6).

The host list protects against DNS rebinding. A web page can send requests to its own host name, even if that name
resolves to this machine. But the page cannot change the `Host` header. Every service checks the header first, on every
path.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
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
        """Return whether a `Host` header is allowed. A missing, empty or malformed header is not allowed."""
        if self._allows_any:
            return True
        form = _HOST.fullmatch((header or b"").decode("latin-1").strip(" \t"))
        return form is not None and form[1].lower() in self._names
