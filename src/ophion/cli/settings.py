"""The global options of the command line: what every command may use."""

from __future__ import annotations

from dataclasses import dataclass, field

from ophion.node.datadir import DataConfig
from ophion.node.network import NetworkConfig
from ophion.runtime.logs import LogLevel
from ophion.runtime.options import option


@dataclass(frozen=True, slots=True)
class Settings:
    """Logging."""

    logging: LogLevel = option(
        "--logging", "-l", default=LogLevel.INFO, metavar="LEVEL", help="How much is logged: OFF to ALL."
    )
    data: DataConfig = field(default_factory=DataConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
