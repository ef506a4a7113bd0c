"""The users as they are known to be, and since when: whose tokens are still worth something.

A token says who somebody was when it was made. When a user is taken out of the credentials file, or gets another
password or other permissions, the tokens he had end: they were made before the change.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from ophion.rpc.auth.credentials import User


class UserRevocations:
    """Users by name, each with the second since which he is as he is."""

    def __init__(self) -> None:
        self._users: Mapping[str, User] = {}
        self._since: dict[str, int] = {}

    def note(self, users: Mapping[str, User], now: float) -> bool:
        """These are the users now; whether somebody was changed or is gone."""
        before, self._users = self._users, dict(users)
        changed = {name for name in before if users.get(name) != before[name]}
        new = changed.union(users.keys() - before.keys())
        # tokens are dated in whole seconds: those of the second of the change count as made before it
        self._since = {name: math.ceil(now) if name in new else self._since[name] for name in users}
        return bool(changed)

    def since(self, name: str) -> int:
        """The earliest second of which a token of this user may be."""
        return self._since.get(name, 0)

    def admits(self, name: str, permissions: frozenset[str], issued_at: float) -> bool:
        """Whether a token says what the roll says, and was made when it said so."""
        user = self._users.get(name)
        return user is not None and frozenset(user.permissions) == permissions and issued_at >= self._since[name]
