"""Ape provider: the local network of Ape on an Ophion chain inside the test process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ape import plugins


@plugins.register(plugins.Config)
def config_class() -> Any:
    """Return the class of the section `ophion` in ape-config.yaml."""
    from ape_ophion.provider import OphionConfig

    return OphionConfig


@plugins.register(plugins.ProviderPlugin)
def providers() -> Iterator[tuple[str, str, Any]]:
    """Register the provider for Ape's local network."""
    from ape_ophion.provider import OphionProvider

    yield "ethereum", "local", OphionProvider
