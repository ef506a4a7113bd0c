"""Do the two halves belong together? Asked once, when the first of this package is imported.

`_native.pyi` is the contract between them, and its text is compiled into the extension. An extension that is older than
the Python beside it (sources were updated, nobody built) would otherwise fail in the middle of something, or wait
forever for an answer that it was asked for in other words.
"""

from __future__ import annotations

from pathlib import Path

from ophion.errors import ExtensionError

_REMEDY = "run `make build`, or install Ophion again."


def check_contract() -> None:
    """`ExtensionError` where the extension is missing, or was built for other sources."""
    try:
        import ophion._native as _native
    except ImportError as error:
        what = "is missing" if isinstance(error, ModuleNotFoundError) else f"cannot be loaded ({error})"
        raise ExtensionError(f"The compiled half of Ophion {what}: {_REMEDY}") from error
    place = Path(str(_native.__file__))
    try:
        contract = (place.parent / "_native.pyi").read_text("utf-8")
    except FileNotFoundError:
        # who packs Ophion without stubs has packed both halves at once
        return
    # one that is older than this question has no answer to it
    keeps = getattr(_native, "keeps", None)
    if keeps is None or not keeps(contract):
        raise ExtensionError(
            f"The compiled half of Ophion, {place}, was built for other Python sources than those beside it: {_REMEDY}"
        )
