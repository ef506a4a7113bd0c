"""Checks once, at import, that the extension was built for these Python sources.

The text of `_native.pyi` is compiled into the extension. Without this check, an outdated extension would fail later
with an obscure error.
"""

from __future__ import annotations

from pathlib import Path

from ophion.errors import ExtensionError

_REMEDY = "run `make build`, or install Ophion again."


def check_contract() -> None:
    """Raise `ExtensionError` if the extension is missing or was built for other sources."""
    try:
        import ophion._native as _native
    except ImportError as error:
        what = "is missing" if isinstance(error, ModuleNotFoundError) else f"cannot be loaded ({error})"
        raise ExtensionError(f"The compiled half of Ophion {what}: {_REMEDY}") from error
    place = Path(str(_native.__file__))
    try:
        contract = (place.parent / "_native.pyi").read_text("utf-8")
    except FileNotFoundError:
        # an installed package has no stubs, and its extension always matches its sources
        return
    # very old extensions have no function `keeps`
    keeps = getattr(_native, "keeps", None)
    if keeps is None or not keeps(contract):
        raise ExtensionError(
            f"The compiled half of Ophion, {place}, was built for other Python sources than those beside it: {_REMEDY}"
        )
