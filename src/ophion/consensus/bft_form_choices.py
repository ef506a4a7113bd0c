"""The message and header forms that options of a validator choose. Every start imports this file, but not the forms."""

from __future__ import annotations

from enum import Enum


class WireProfileChoice(Enum):
    """The wire profile that an option configures."""

    CLASSIC = "classic"
    BAL = "bal"
    AUTO = "auto"
    """The profile that all connected validators understand."""


class HeaderFormChoice(Enum):
    """The configured form of the first header after Shanghai."""

    AUTO = "auto"
    """Use the header form of the genesis file, else of the connected validators, else the full form."""
    FULL = "full"
    SHORT = "short"
    SHORT_BLOBS = "short-blobs"
