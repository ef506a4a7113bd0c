"""Text from remote nodes, made safe for a terminal."""

from __future__ import annotations

from typing import Final

MAX_UNTRUSTED_CHARS: Final = 500


def escape_untrusted(text: object, max_chars: int = MAX_UNTRUSTED_CHARS) -> str:
    """Return the value as one printable line of limited length.

    Newlines, terminal escapes, direction overrides and lone surrogates become `\\n`, `\\x1b`, `\\u202e` and so on.
    """
    shown = str(text)
    cut = shown[:max_chars]
    safe = "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in cut)
    return safe + "…" if len(shown) > max_chars else safe
