"""`GET /metrics` on its own port, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

from ophion.metrics.options import MetricsConfig
from ophion.rpc.transport.host_allowlist import HostList
from ophion.rpc.transport.http.messages import TEXT, Request, Response
from ophion.rpc.transport.http.policy import HttpLimits, Result
from ophion.rpc.transport.http.service import HttpService
from ophion.rpc.transport.origins import OriginList
from ophion.rpc.transport.shared_resources import SharedResources
from ophion.runtime.metrics_registry import MetricsRegistry

if TYPE_CHECKING:
    import ssl

CONTENT_TYPE: Final = b"text/plain; version=0.0.4; charset=utf-8"
_LIMITS: Final = HttpLimits(max_connections=64, max_body_bytes=64 * 1024)
_MAX_NAMES: Final = 256
_HOST_REFUSED: Final = Response(403, (b"Host not authorized.",), TEXT)


class MetricsApplication:
    """Request handlers of the metrics port."""

    host_refused: Final = _HOST_REFUSED

    def __init__(self, registry: MetricsRegistry, config: MetricsConfig) -> None:
        self.plain: Callable[..., Result] | None = None
        self._registry = registry
        self._categories = frozenset(config.categories)

    def respond(self, request: Request) -> Result:
        """Respond to `/metrics` (`?name[]=...` selects families), and to `/` for load balancers."""
        if request.method != b"GET":
            return Response(405, headers=b"Allow: GET\r\n")
        if request.path == b"/":
            return Response(201)
        if request.path != b"/metrics":
            return Response(404)
        try:
            names = parse_qs(request.query.decode("latin-1"), max_num_fields=_MAX_NAMES).get("name[]", [])
        except ValueError:
            return Response(400)
        return Response(200, (self._registry.text(self._categories, names).encode(),), CONTENT_TYPE)

    def close(self) -> None:
        """Do nothing, because every request is answered immediately."""


def metrics_service(
    registry: MetricsRegistry,
    config: MetricsConfig,
    hosts: tuple[str, ...],
    tls: ssl.SSLContext | None = None,
    shared: SharedResources | None = None,
) -> HttpService:
    """Build the HTTP service for Prometheus."""
    return HttpService(
        "Metrics service",
        config.host,
        config.port,
        HostList(hosts),
        OriginList(()),
        _LIMITS,
        lambda loop: MetricsApplication(registry, config),
        tls,
        shared,
    )
