"""How a service asks for tokens; light, so that options may name it without loading any cryptography."""

from __future__ import annotations

from enum import Enum
from pathlib import Path

from msgspec import Struct, field

from ophion.runtime.clock import Clock, SystemClock


class JwtAlgorithm(Enum):
    """How tokens are signed."""

    RS256 = "RS256"
    RS384 = "RS384"
    RS512 = "RS512"
    ES256 = "ES256"
    ES384 = "ES384"
    ES512 = "ES512"
    HS256 = "HS256"


class AuthSettings(Struct, frozen=True):
    """Where tokens come from: users who log in here, or an issuer elsewhere whose key is known."""

    credentials_file: Path | None = None
    public_key_file: Path | None = None
    """The key of an external issuer; with it nobody can log in here."""
    algorithm: JwtAlgorithm = JwtAlgorithm.RS256
    exempt_methods: tuple[str, ...] = ()
    """Methods that need no token."""
    clock: Clock = field(default_factory=SystemClock)
