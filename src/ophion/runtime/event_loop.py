"""The event loop without TLS, for processes that do not speak it.

asyncio and uvloop load the module `ssl`, and with it OpenSSL, whether anybody wants it or not: 4.4 of 38 MB, and a
twentieth of the time in which a node starts. Both use it for encrypted connections alone. asyncio can do without, for
interpreters that were built so; uvloop takes ten names from it while it is loaded, and looks at them again when it is
given a context. So a process that will give it none loads both beside a module that has these names and nothing else.

A context that comes nevertheless is refused: nothing is sent in clear that was meant to be encrypted. The module `ssl`
itself can be loaded afterwards, by whoever has other use for it.
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
    """Load asyncio and uvloop without OpenSSL; where it is there already, nothing is left to spare."""
    with left_out("ssl"):
        import asyncio  # noqa: F401
    with left_out("ssl", _names()):
        import uvloop  # noqa: F401


def _names() -> ModuleType:
    """What uvloop takes from `ssl` while it is loaded. A name that a later version asks for comes from the real one."""
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
