"""The credentials file, and the password check.

    [Users.alice]
    password = "$2a$10$..."
    permissions = ["net:*", "eth:blockNumber"]

Each login reads the file again, so that users can change without a restart. Checking a password takes the same time for
every name: the node also computes a hash for an unknown name. So the response time does not reveal which users exist.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import bcrypt
from msgspec import Struct

from ophion.errors import OphionError
from ophion.runtime.operator_files import table_of

_MAX_PASSWORD_BYTES: Final = 72
"""Number of bytes of a password that bcrypt uses. bcrypt ignores further bytes."""
_DEFAULT_COST: Final = 10


class CredentialsError(OphionError):
    """Raised when the credentials file cannot be used."""


class User(Struct, frozen=True):
    """A user in the credentials file."""

    name: str
    password_hash: str
    permissions: tuple[str, ...]
    tenant: str | None = None
    """The user's enclave key (`privacyPublicKey`) on a node with several tenants."""

    def __repr__(self) -> str:
        return f"User({self.name!r})"


def read_users(path: Path) -> dict[str, User]:
    """Return the users in a credentials file. Raises `CredentialsError` with a one-line reason."""
    try:
        content = table_of(path)
    except OSError as error:
        raise CredentialsError(f"Unable to read the credentials file {path}: {error.strerror}") from None
    except ValueError as error:
        raise CredentialsError(f"Invalid TOML in the credentials file {path}: {error}") from None
    users = content.get("Users", {})
    if not isinstance(users, dict):
        raise CredentialsError("RPC authentication configuration file contains invalid values.")
    return {name: _user(name, entry) for name, entry in users.items()}


def _user(name: str, entry: Any) -> User:
    if not isinstance(entry, dict):
        raise CredentialsError("RPC authentication configuration file contains invalid values.")
    password = entry.get("password")
    if not isinstance(password, str) or not password:
        raise CredentialsError("RPC user specified without password.")
    for key, value in entry.items():
        is_list = isinstance(value, list) and all(isinstance(member, str) for member in value)
        if not is_list and key not in ("password", "privacyPublicKey"):
            raise CredentialsError("RPC authentication configuration file contains invalid values.")
    tenant = entry.get("privacyPublicKey")
    return User(name, password, tuple(entry.get("permissions", ())), tenant if isinstance(tenant, str) else None)


def login_warnings(users: Mapping[str, User]) -> list[str]:
    """Return a warning for each user that can never log in."""
    if not users:
        return ["it has no table [Users.NAME], so that no user can log in"]
    return [
        f"the password of {name} is no bcrypt hash, so that {name} cannot log in; `ophion password hash` makes one"
        for name, user in users.items()
        if _cost(user.password_hash) is None
    ]


def checked_user(users: Mapping[str, User], name: str, password: str) -> User | None:
    """Return the user if the password matches. Takes tens of milliseconds, so it must not run on the event loop."""
    given = password.encode("utf-8", "surrogatepass")[:_MAX_PASSWORD_BYTES]
    user = users.get(name)
    if user is not None:
        matches = _matches(given, user.password_hash.encode())
        if matches is not None:
            return user if matches else None
    _matches(given, _decoy(users))
    return None


def _matches(given: bytes, hashed: bytes) -> bool | None:
    """Return whether a password matches a hash. For a malformed hash, returns None without hashing."""
    try:
        return bcrypt.checkpw(given.replace(b"\0", b"\xff"), hashed) and b"\0" not in given
    except ValueError:
        return None


def _decoy(users: Mapping[str, User]) -> bytes:
    """Return a hash that no password matches, so that a login with an unknown name takes as long as with a known name.
    Its bcrypt cost is the most common cost in the file.
    """
    costs = Counter(cost for user in users.values() if (cost := _cost(user.password_hash)) is not None)
    cost = costs.most_common(1)[0][0] if costs else _DEFAULT_COST
    return b"$2b$%02d$" % cost + b"." * 53


def _cost(password_hash: str) -> int | None:
    parts = password_hash.split("$")
    return int(parts[2]) if len(parts) == 4 and parts[2].isdecimal() and 4 <= int(parts[2]) <= 31 else None
