"""The options that `--profile` of Besu sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_ENTERPRISE: Final = {
    "sync-mode": "FULL",
    "remote-connections-limit-enabled": "false",
    "rpc-http-max-active-connections": "300",
    "min-gas-price": "0",
}
"""Options of Besu's enterprise profile, except options for storage format, pool and minimum number of peers."""

_PROFILES: Final[Mapping[str, Mapping[str, str]]] = {
    "enterprise": _ENTERPRISE,
    "private": _ENTERPRISE,
    "none": {},
    "performance": {},
    "performance_rpc": {},
}


def profile_options(name: str) -> Mapping[str, str]:
    """Return the options of a profile with their values. Raises `ValueError` for a profile that Ophion does
    not have.
    """
    found = _PROFILES.get(name.strip().lower().replace("-", "_"))
    if found is None:
        raise ValueError(f"expected one of [{', '.join(_PROFILES).upper()}] (case-insensitive) but was '{name}'")
    return found
