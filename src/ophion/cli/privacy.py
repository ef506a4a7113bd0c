"""`ophion privacy`: what people do about private transactions at a terminal."""

from __future__ import annotations

from ophion.cli.privacy_keygen import KEYGEN

COMMANDS = (KEYGEN,)
