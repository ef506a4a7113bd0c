"""Reads URLs in options. Separate from the JSON-RPC client, so that commands without URLs start faster."""

from __future__ import annotations

from collections.abc import Callable

from ophion.runtime.options import is_url


def read_url(*schemes: str) -> Callable[[str], str]:
    """Return a function that checks the text of a URL option. The URL must have one of these schemes."""

    def read(text: str) -> str:
        if not is_url(text, *schemes) or not text.isascii():
            raise ValueError(f"expected {schemes[0]}://HOST:PORT but was '{text}'")
        return text

    return read
