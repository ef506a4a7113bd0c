"""Allowed origins of a service that serves a web page: the configured ones and its own.

A browser sends an `Origin` with every POST, even to the server of the page itself. So the service allows its own
origin: its scheme, one of its host names, and its port.
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
        self._scheme, self._default_port = ("https", 443) if is_encrypted else ("http", 80)
        self._hosts = [name.lower() for name in hosts if name not in ANY and name != NONE]
        self._port = port

    def allows(self, origin: bytes, host: bytes | None = None) -> bool:
        """Whether an `Origin` header is allowed in a request with this `Host`."""
        if super().allows(origin):
            return True
        text = origin.decode("latin-1").lower()
        return self._is_own(text) or self._is_same_server(text, (host or b"").decode("latin-1").lower())

    def _is_same_server(self, origin: str, host: str) -> bool:
        """Return whether a page calls the server that served it. Ports are ignored, because they may be mapped.

        The host must be an IP address or a listed name: an unlisted name could be DNS rebinding.
        """
        name = host.rpartition(":")[0] or host
        is_address = name.startswith("[") or name.replace(".", "").isdigit()
        return origin == f"{self._scheme}://{host}" and (is_address or name in self._hosts)

    def _is_own(self, origin: str) -> bool:
        port = self._port()
        end = "" if port == self._default_port else f":{port}"  # browsers omit the default port
        return any(origin == f"{self._scheme}://{name}{end}" for name in (*self._hosts, "localhost", "127.0.0.1"))
