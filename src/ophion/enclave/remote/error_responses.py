"""Error responses of a remote enclave.

Orion answers `{"error": "<Code>"}`, Tessera answers with a sentence that contains keys. Both become an `EnclaveError`
with the same code, so clients see the same errors with every enclave (privacy.md 5, 11).
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
"""Error codes of Orion, by the sentence with which Tessera reports the same error. Enclave keys are removed from these
sentences.
"""

_BASE64: Final = re.compile(r"(?<![\w+/])[\w+/-]{20,}={0,2}(?![\w+/=])", re.ASCII)
_EMPTIED: Final = re.compile(r"\b\w+\[\]", re.ASCII)
"""Text such as `Id[]`, which remains in a sentence of Tessera after a key is removed."""
_MAX_SHOWN: Final = 200


def refusal(status: int, body: bytes) -> EnclaveError:
    """Return the error that an unsuccessful response describes."""
    word = _word(body)
    if word in WORDS:
        return EnclaveError(f"the enclave refuses with {word}", word)
    # remove keys and all other base64 from the response
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
