"""The user behind the current request, for audit records and tenants."""

from __future__ import annotations

from contextvars import ContextVar

SUBJECT: ContextVar[str | None] = ContextVar("subject", default=None)
"""User of the request's token, inherited by the tasks it starts; None without a token."""

TENANT: ContextVar[str | None] = ContextVar("tenant", default=None)
"""Enclave key in the token (`privacyPublicKey`), as written there."""
