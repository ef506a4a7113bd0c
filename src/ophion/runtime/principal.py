"""The user of the current request, for audit records and tenants."""

from __future__ import annotations

from contextvars import ContextVar

SUBJECT: ContextVar[str | None] = ContextVar("subject", default=None)
"""User of the request's token; None without a token. Tasks that the request starts inherit the user."""

TENANT: ContextVar[str | None] = ContextVar("tenant", default=None)
"""Enclave key in the token (`privacyPublicKey`), in the token's encoding."""
