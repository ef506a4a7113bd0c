"""Who may talk to a service at all: the host allow-list and the allowed origins (json-rpc.md 1.6, 1.7).

The host list guards against DNS rebinding: a page in a browser can make a request to a name that its owner points at
this machine, but it cannot choose another `Host` header. It is checked first, on every path and every service.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

ANY: Final = frozenset({"*", "all"})
NONE: Final = "none"

_HOST: Final = re.compile(r"([^:]+)(?::[0-9]{1,5})?")


class HostList:
    """Names under which this service may be addressed."""

    def __init__(self, names: Sequence[str]) -> None:
        self._allows_any = not ANY.isdisjoint(names)
        self._names = frozenset(name.lower() for name in names if name != NONE)

    def allows(self, header: bytes | None) -> bool:
        """Whether a `Host` header is welcome; an absent, empty or malformed one is not."""
        if self._allows_any:
            return True
        form = _HOST.fullmatch((header or b"").decode("latin-1").strip())
        return form is not None and form[1].lower() in self._names


class OriginList:
    """Pages that may call this service from a browser; each entry is a regular expression, `*` means any."""

    def __init__(self, origins: Sequence[str]) -> None:
        self._allows_any = not ANY.isdisjoint(origins)
        patterns = [origin for origin in origins if origin != NONE and origin not in ANY]
        self._pattern = re.compile("|".join(f"(?:{pattern})" for pattern in patterns)) if patterns else None

    def allows(self, origin: bytes) -> bool:
        """Whether an `Origin` header is welcome; nothing is when no origins are configured."""
        if self._allows_any:
            return True
        return self._pattern is not None and self._pattern.fullmatch(origin.decode("latin-1")) is not None
