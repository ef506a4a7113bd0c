"""Imports optional packages, which the extra `ophion[data]` installs."""

from __future__ import annotations

import importlib
from typing import Any

from ophion.errors import CommandError


def require(name: str) -> Any:
    """Import an optional package. If the package is missing, `CommandError` says how to install it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise CommandError(f"The package {package} is missing. Install it: pip install 'ophion[data]'") from error
