"""What a person sees at `/`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ophion.gateway.paths import Page, PageAnswer

_HEADERS: Final = (
    ("Content-Type", "text/html; charset=utf-8"),
    ("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"),
    ("X-Content-Type-Options", "nosniff"),
    ("Cache-Control", "no-store"),
)
_LINE: Final = b'<!doctype html><html lang="en"><title>Ophion</title><p>Ophion: <a href="nodes.json">nodes.json</a>'


def page_files() -> Page:
    """The files of the page."""
    return _line


def _line(path: str, headers: Mapping[bytes, bytes]) -> PageAnswer | None:
    return (200, _HEADERS, _LINE) if path == "/" else None
