"""Settings of authentication. A separate module, so that the options do not load cryptography."""

from __future__ import annotations

from enum import Enum
from pathlib import Path

from msgspec import Struct, field

from ophion.runtime.clock import Clock, SystemClock


class JwtAlgorithm(Enum):
    """Signature algorithm of tokens."""

    RS256 = "RS256"
    RS384 = "RS384"
    RS512 = "RS512"
    ES256 = "ES256"
    ES384 = "ES384"
    ES512 = "ES512"
    HS256 = "HS256"


class AuthSettings(Struct, frozen=True):
    """Source of tokens: logins at this node, or an external issuer with a known key."""

    credentials_file: Path | None = None
    public_key_file: Path | None = None
    """Public key of an external issuer. If set, this node offers no logins."""
    algorithm: JwtAlgorithm = JwtAlgorithm.RS256
    exempt_methods: tuple[str, ...] = ()
    """Methods that need no token."""
    clock: Clock = field(default_factory=SystemClock)
