"""Who asked for what is being done: the user of a token, for records of changes and for what belongs to tenants."""

from __future__ import annotations

from contextvars import ContextVar

SUBJECT: ContextVar[str | None] = ContextVar("subject", default=None)
"""Set while a request with a token is handled, and inherited by the tasks it begins; None without a token."""

TENANT: ContextVar[str | None] = ContextVar("tenant", default=None)
"""The enclave key that the token names (`privacyPublicKey`), as it is written there."""
