"""Options of metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from ophion.rpc.transport.options import ListenerConfig, listening_port
from ophion.runtime.metric_category import Category
from ophion.runtime.options import at_least, option, read_host
from ophion.runtime.options import port as valid_port


class MetricsConfig(ListenerConfig):
    """Metrics: metrics port, metric families and push gateway."""

    names: ClassVar[Mapping[str, str]] = {"service": "metrics", "content": "metrics for Prometheus"}

    port: int = listening_port(9545)
    categories: tuple[Category, ...] = option(
        "--metrics-category",
        "--metrics-categories",
        default=tuple(category for category in Category if not category.name.startswith("KVSTORE")),
        help="Categories to show.",
    )
    push_enabled: bool = option("--metrics-push-enabled", default=False, help="Push metrics to a gateway.")
    push_host: str = option(
        "--metrics-push-host",
        default="127.0.0.1",
        parse=read_host,
        metavar="HOST",
        needs="--metrics-push-enabled",
        help="Host of the gateway.",
    )
    push_port: int = option(
        "--metrics-push-port",
        default=9001,
        check=valid_port,
        needs="--metrics-push-enabled",
        help="Port of the gateway.",
    )
    push_interval_s: int = option(
        "--metrics-push-interval",
        default=15,
        check=at_least(1),
        needs="--metrics-push-enabled",
        help="Seconds between pushes.",
    )
    push_job: str = option(
        "--metrics-push-prometheus-job",
        default="ophion-client",
        needs="--metrics-push-enabled",
        help="Name of the job at the gateway.",
    )

    def problems(self) -> Iterator[str]:
        if self.enabled and self.push_enabled:
            yield (
                "--metrics-enabled option and --metrics-push-enabled option can't be used at the same time.  Please"
                " refer to CLI reference for more details about this constraint."
            )

    @property
    def is_on(self) -> bool:
        """Whether the metrics port or the push gateway is on."""
        return self.enabled or self.push_enabled
