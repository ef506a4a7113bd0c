"""Revocation of tokens whose users were removed or changed.

A token states the permissions of its user at the time of the login. When the credentials file removes a user or
changes the password or permissions, the tokens issued before the change end.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from ophion.rpc.auth.credentials import User


class UserRevocations:
    """Current users by name, each with the time of its last change."""

    def __init__(self) -> None:
        self._users: Mapping[str, User] = {}
        self._since: dict[str, int] = {}

    def update_users(self, users: Mapping[str, User], now: float) -> bool:
        """Replace the known users. Returns whether any known user was changed or removed."""
        before, self._users = self._users, dict(users)
        changed = {name for name in before if users.get(name) != before[name]}
        new = changed.union(users.keys() - before.keys())
        # token times are whole seconds, so round up: a token of the same second counts as issued before the change
        self._since = {name: math.ceil(now) if name in new else self._since[name] for name in users}
        return bool(changed)

    def since(self, name: str) -> int:
        """Return the earliest issue time, in seconds, of a valid token of this user."""
        return self._since.get(name, 0)

    def admits(self, name: str, permissions: frozenset[str], issued_at: float) -> bool:
        """Return whether a token has its user's current permissions and is newer than the last change of that user."""
        user = self._users.get(name)
        return user is not None and frozenset(user.permissions) == permissions and issued_at >= self._since[name]
