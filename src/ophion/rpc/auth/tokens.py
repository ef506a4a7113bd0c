"""JSON Web Tokens, issued by this node or by an external issuer with a configured public key.

Each service has one key and one algorithm, chosen when it starts. A token must name this algorithm, which defeats `alg:
none` and a public key used as a shared secret. PyJWT and cryptography check signatures; this module checks times with
the clock of the node.

Each service generates its own key. So a token is invalid after a restart, and a token for HTTP is invalid on WebSocket.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from msgspec import Struct

from ophion.errors import ConfigError
from ophion.rpc.auth.credentials import User
from ophion.rpc.auth.revocation import UserRevocations
from ophion.rpc.auth.settings import JwtAlgorithm
from ophion.runtime.operator_files import content_of

LIFETIME_S: Final = 300
MAX_TOKEN_BYTES: Final = 16 * 1024
_KEY_BITS: Final = 2048
_MIN_SECRET_BYTES: Final = 32


class TokenClaims(Struct, frozen=True):
    """User, permissions and expiry that a valid token states."""

    username: str
    permissions: frozenset[str]
    expires_at: float
    """Time at which the token expires, in Unix seconds."""
    issued_at: float = 0.0
    tenant: str | None = None
    """The user's enclave key on a node with several tenants."""


class TokenReader:
    """Verifies and decodes the tokens of one issuer."""

    def __init__(self, key: Any, algorithm: JwtAlgorithm) -> None:
        self._key = key
        self._algorithm = algorithm.value
        self.changed: list[Callable[[], None]] = []
        """Callbacks that run when tokens may have been revoked."""

    def read(self, token: bytes, now: float) -> TokenClaims | None:
        """Return the claims. Returns None if the token is forged, malformed, expired or not valid yet, or if it has no
        expiry.
        """
        if len(token) > MAX_TOKEN_BYTES:
            return None
        try:
            claims = jwt.decode(token, self._key, algorithms=[self._algorithm], options=_SIGNATURE_ONLY)
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
            return None
        expires_at, begins_at = _time(claims.get("exp")), _time(claims.get("nbf", 0))
        if expires_at is None or begins_at is None or not begins_at <= now < expires_at:
            return None
        permissions = claims.get("permissions", [])
        if not isinstance(permissions, list):
            return None
        entries = frozenset(entry for entry in permissions if isinstance(entry, str))
        tenant = claims.get("privacyPublicKey")
        return TokenClaims(
            str(claims.get("username", "")),
            entries,
            expires_at,
            _time(claims.get("iat")) or 0.0,
            tenant if isinstance(tenant, str) else None,
        )

    def admits(self, claims: TokenClaims) -> bool:
        """Return whether a token with these claims is not revoked. Does not check the expiry."""
        return True


class TokenIssuer(TokenReader):
    """Signs and reads the tokens of this service."""

    def __init__(self, revocations: UserRevocations | None = None) -> None:
        """Create an issuer. With `revocations`, a token is valid only while its user is unchanged."""
        self._revocations = revocations
        self._private_key = rsa.generate_private_key(public_exponent=65537, key_size=_KEY_BITS)
        super().__init__(self._private_key.public_key(), JwtAlgorithm.RS256)

    def issue(self, username: str, permissions: tuple[str, ...], now: float, tenant: str | None = None) -> str:
        """Return a token that is valid for five minutes."""
        issued_at = int(now) if self._revocations is None else max(int(now), self._revocations.since(username))
        claims: dict[str, Any] = {
            "permissions": list(permissions),
            "username": username,
            "iat": issued_at,
            "exp": issued_at + LIFETIME_S,
        }
        if tenant is not None:
            claims["privacyPublicKey"] = tenant
        return jwt.encode(claims, self._private_key, algorithm=JwtAlgorithm.RS256.value)

    def admits(self, claims: TokenClaims) -> bool:
        revocations = self._revocations
        return revocations is None or revocations.admits(claims.username, claims.permissions, claims.issued_at)

    def update_users(self, users: Mapping[str, User], now: float) -> None:
        """Replace the known users. Tokens of removed or changed users end immediately."""
        if self._revocations is not None and self._revocations.update_users(users, now):
            for look in tuple(self.changed):
                look()


def reader_from_file(path: Path, algorithm: JwtAlgorithm) -> TokenReader:
    """Return a reader with the key of an external issuer: a PEM public key, or the shared secret of HS256."""
    try:
        content = content_of(path)
    except OSError as error:
        raise ConfigError(f"Unable to read the JWT public key file {path}: {error.strerror}") from None
    except ValueError as error:
        raise ConfigError(f"Unable to read the JWT public key file {path}: {error}") from None
    if algorithm is JwtAlgorithm.HS256:
        secret = content.strip()
        if len(secret) < _MIN_SECRET_BYTES:
            raise ConfigError(f"The JWT secret in {path} has fewer than {_MIN_SECRET_BYTES} bytes.")
        content = secret
    try:
        key = jwt.get_algorithm_by_name(algorithm.value).prepare_key(content)
    except (jwt.PyJWTError, ValueError, TypeError) as error:
        # for a key of another type, PyJWT's message names only a generator object, so use a clearer reason
        reason = "it is a key of another type" if "<generator" in str(error) else error
        raise ConfigError(f"The JWT public key file {path} holds no key for {algorithm.value}: {reason}") from None
    return TokenReader(key, algorithm)


def _time(value: object) -> float | None:
    """Return `value` if it is a finite number, else None. With the time Infinity, a token would never expire."""
    try:
        number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


_SIGNATURE_ONLY: Final[Any] = {
    "verify_signature": True,
    "verify_exp": False,
    "verify_nbf": False,
    "verify_iat": False,
    "verify_aud": False,
    "verify_iss": False,
    "verify_sub": False,
    "verify_jti": False,
}
