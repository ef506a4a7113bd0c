"""Request ids, repeated in the answer exactly as the client wrote them."""

from __future__ import annotations

from typing import Any, Final

import orjson

from ophion.native.messages import json_outline
from ophion.rpc.errors import NULL

_ABSENT: Final = object()


def text_of_id(message: dict[str, Any], text: bytes) -> bytes | None:
    """Return the id for the answer: empty bytes for a notification, None for an invalid type.

    An id that is a fraction or an integer beyond 64 bits is copied from `text`, because parsing would lose digits.
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


def written_id(text: bytes, span: tuple[int, int] | None) -> bytes | None:
    """Return the id exactly as the client wrote it, cut from the message text. Returns empty bytes if there is no id,
    and None for an id of an invalid type.
    """
    if span is None:
        return b""
    written = text[span[0] : span[1]]
    return written if written[:1] in b'"-0123456789n' else None
