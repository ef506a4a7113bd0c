"""Pages that may call a service which has a page itself: those of the configured origins, and its own.

A browser names the origin of every POST, also of one that goes to where its page came from. The page is this service's
own, so its origin is as good as none: scheme, one of the names this service is addressed by, and its port.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ophion.rpc.transport.access import ANY, NONE, OriginList


class PageOrigins(OriginList):
    """The configured origins and the service's own."""

    def __init__(
        self, origins: Sequence[str], hosts: Sequence[str], port: Callable[[], int], is_encrypted: bool = False
    ) -> None:
        super().__init__(origins)
        self._scheme, self._usual_port = ("https", 443) if is_encrypted else ("http", 80)
        self._hosts = [name.lower() for name in hosts if name not in ANY and name != NONE]
        self._port = port

    def allows(self, origin: bytes, host: bytes | None = None) -> bool:
        """Whether an `Origin` header is welcome in a request that is addressed to `host`."""
        if super().allows(origin):
            return True
        text = origin.decode("latin-1").lower()
        return self._is_own(text) or self._is_where_asked(text, (host or b"").decode("latin-1").lower())

    def _is_where_asked(self, origin: str, host: str) -> bool:
        """Whether a page asks where it came from, at whatever port: it may have been mapped.

        Where any name is allowed, somebody may point his own at this machine. He cannot do that with an address.
        """
        name = host.rpartition(":")[0] or host
        is_address = name.startswith("[") or name.replace(".", "").isdigit()
        return origin == f"{self._scheme}://{host}" and (is_address or name in self._hosts)

    def _is_own(self, origin: str) -> bool:
        port = self._port()
        end = "" if port == self._usual_port else f":{port}"  # browsers leave the usual one out
        return any(origin == f"{self._scheme}://{name}{end}" for name in (*self._hosts, "localhost", "127.0.0.1"))
