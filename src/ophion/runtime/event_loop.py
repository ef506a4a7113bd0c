"""Loads asyncio and uvloop without OpenSSL, for processes without TLS.

asyncio and uvloop import `ssl`, which takes 4.4 MB of memory and a twentieth of the start time. Both use `ssl` only for
encrypted connections. asyncio runs without `ssl`. uvloop reads ten names of `ssl` at import but uses them only with a
TLS context. This module provides a replacement with these names.

With the replacement, a TLS context raises an error, so that no data is sent unencrypted by mistake. Other code can
import the real `ssl` later.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, Final

from ophion.runtime.lazy_imports import left_out

_MAKERS: Final = ("MemoryBIO", "create_default_context")
_ERRORS: Final = ("SSLError", "SSLWantReadError", "SSLSyscallError", "SSLZeroReturnError", "CertificateError")
_NUMBERS: Final = ("SSL_ERROR_WANT_READ", "SSL_ERROR_WANT_WRITE", "SSL_ERROR_SYSCALL")


def load_without_tls() -> None:
    """Load asyncio and uvloop without OpenSSL. Does nothing when `ssl` is already loaded."""
    with left_out("ssl"):
        import asyncio  # noqa: F401
    with left_out("ssl", _names()):
        import uvloop  # noqa: F401


def _names() -> ModuleType:
    """Return a replacement for `ssl` with the names that uvloop reads. Other names come from the real module."""
    names = ModuleType("ssl")
    names.SSLContext = type("SSLContext", (), {})  # type: ignore[attr-defined]
    for name in _MAKERS:
        setattr(names, name, _refuse)
    for name in _ERRORS:
        setattr(names, name, type(name, (OSError,), {}))
    for name in _NUMBERS:
        setattr(names, name, 0)
    names.__getattr__ = _real  # type: ignore[method-assign]
    return names


def _refuse() -> None:
    raise RuntimeError("this process does not speak TLS")


def _real(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    stand_in = sys.modules.pop("ssl")
    try:
        import ssl

        return getattr(ssl, name)
    finally:
        sys.modules["ssl"] = stand_in
