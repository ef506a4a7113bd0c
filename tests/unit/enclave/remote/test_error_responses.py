"""Tests the meaning of a refusal in both protocol variants."""

from __future__ import annotations

import pytest

from ophion.enclave.error_codes import WORDS
from ophion.enclave.remote.error_responses import refusal

KEY = "A1aVtMxLCUHmBVHXoZzzBgPbW/wj5axDpW9X8l91SGo="


@pytest.mark.parametrize("code", sorted(WORDS))
def test_the_words_of_orion_are_passed_on(code: str) -> None:
    assert refusal(500, b'{"error":"%b"}' % code.encode()).code == code


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (f"Recipient not found for key: {KEY}", "Recipient not found for key:"),
        (
            "The list of members in a privacy group should include self",
            "The list of members in a privacy group should include self",
        ),
        (f"Privacy group {KEY} not found", "PrivacyGroupNotFound"),
        (f"Privacy group Id[{KEY}] not found", "PrivacyGroupNotFound"),
        (f"No suitable recipient keys found to decrypt payload for : {KEY}", "EnclaveKeysCannotDecryptPayload"),
        ("Something else", None),
        ('{"error":"Unheard"}', None),
        ('{"error":7}', None),
        ("[]", None),
        ("", None),
        ("{" * 5000, None),
    ],
)
def test_the_sentences_of_tessera_lose_their_keys(body: str, code: str | None) -> None:
    error = refusal(404, body.encode())
    assert error.code == code
    assert KEY not in str(error)
    assert len(str(error)) < 400
