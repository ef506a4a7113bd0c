"""The id of a request, as it goes back: as it was written, where a number of this machine would not keep it."""

from __future__ import annotations

from typing import Any, Final

import orjson

from ophion.native.messages import json_outline
from ophion.rpc.errors import NULL

_ABSENT: Final = object()


def text_of_id(message: dict[str, Any], text: bytes) -> bytes | None:
    """The id as it goes back: empty for a notification, None when it is of a type that no id can have.

    `text` is that of the message. Fractions and integers wider than 64 bits do not survive being parsed, so they are
    taken from where they stand.
    """
    request_id = message.get("id", _ABSENT)
    if type(request_id) is int:
        return b"%d" % request_id
    if type(request_id) is str:
        return orjson.dumps(request_id)
    if request_id is _ABSENT:
        return b""
    if request_id is None:
        return NULL
    if type(request_id) is float:
        outline = json_outline(text, 0)
        return None if outline is None else written_id(text, outline.id)
    return None


def written_id(text: bytes, place: tuple[int, int] | None) -> bytes | None:
    """The same for an id that was not parsed, by its place in the text."""
    if place is None:
        return b""
    written = text[place[0] : place[1]]
    return written if written[:1] in b'"-0123456789n' else None
