"""What a refusal of an enclave outside means.

Orion answers `{"error": "<Code>"}`, Tessera a sentence with keys in it. Both become one `EnclaveError`, so that clients
of the node see the same in every mode (privacy.md 5, 11).
"""

from __future__ import annotations

import re
from typing import Final

import orjson

from ophion.enclave.error_codes import WORDS
from ophion.errors import EnclaveError

_SAME: Final = {
    "Privacy group not found": "PrivacyGroupNotFound",
    "No suitable recipient keys found to decrypt payload for :": "EnclaveKeysCannotDecryptPayload",
}
"""Sentences of Tessera, without the keys in them, that Orion has a word for."""

_BASE64: Final = re.compile(r"(?<![\w+/])[\w+/-]{20,}={0,2}(?![\w+/=])", re.ASCII)
_EMPTIED: Final = re.compile(r"\b\w+\[\]", re.ASCII)
"""What stood around a key: `Id[...]`."""
_MAX_SHOWN: Final = 200


def refusal(status: int, body: bytes) -> EnclaveError:
    """The error behind an answer that is no success."""
    word = _word(body)
    if word in WORDS:
        return EnclaveError(f"the enclave says {word}", word)
    # without the keys, and without whatever else a stranger may have put there
    sentence = " ".join(_EMPTIED.sub("", _BASE64.sub("", word[:4096])).split())
    code = sentence if sentence in WORDS else _SAME.get(sentence)
    return EnclaveError(f"the enclave answers with status {status}: {sentence[:_MAX_SHOWN]!r}", code)


def _word(body: bytes) -> str:
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError:
        return body[:4096].decode("utf-8", errors="replace")
    if isinstance(content, dict) and isinstance(content.get("error"), str):
        return str(content["error"])
    return content if isinstance(content, str) else ""
