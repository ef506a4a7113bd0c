"""Makes text from remote nodes safe for a terminal."""

from __future__ import annotations

from typing import Final

from ophion.runtime.terminal_text import escape_line

MAX_UNTRUSTED_CHARS: Final = 500


def escape_untrusted(text: object, max_chars: int = MAX_UNTRUSTED_CHARS) -> str:
    """Return the value as one printable line of limited length.

    Newlines, terminal escapes, direction overrides and lone surrogates become `\\n`, `\\x1b`, `\\u202e` and so on.
    """
    shown = str(text)
    safe = escape_line(shown[:max_chars])
    return safe + "…" if len(shown) > max_chars else safe
