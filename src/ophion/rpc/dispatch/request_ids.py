"""The id of a request, as it goes back."""

from __future__ import annotations

import json
from typing import Any, Final

import orjson

from ophion.rpc.errors import NULL

_ABSENT: Final = object()


def text_of_id(message: dict[str, Any], body: bytes = b"") -> bytes | None:
    """The id as it goes back: empty for a notification, None when it is of a type that no id can have.

    `body` is the text of the message, which an id that is no 64-bit integer needs.
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
        try:
            request_id = _numbers_as_text(body)["id"] if body else None
        except RecursionError:
            return None  # the standard parser gives up before orjson does
    return request_id.encode() if type(request_id) is _NumberText else None


class _NumberText(str):
    """A JSON number kept as it was written: fractions and integers wider than 64 bits do not survive a float."""


def _numbers_as_text(body: bytes) -> Any:
    return json.loads(body, parse_float=_NumberText, parse_int=_NumberText)


def keep_ids(messages: list[Any], body: bytes) -> None:
    """Put the written form of fractional and huge ids back into the members of a batch."""
    try:
        every = _numbers_as_text(body)
    except RecursionError:
        return
    for message, written in zip(messages, every, strict=True):
        if type(message) is dict and type(message.get("id")) is float:
            message["id"] = written["id"]
