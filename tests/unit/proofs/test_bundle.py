"""The file of a proof has one canonical text."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from ophion.errors import ProofError
from ophion.proofs.bundle import AccountProof, ProofBundle, SlotProof, TransactionProof

BUNDLE = ProofBundle(
    chain_id=2018,
    consensus="qbft",
    number=300,
    hash=b"\xab" * 32,
    votes=(b"\xc1\x80",),
    header=b"\xc2\x01\x02",
    confirmations=(),
    transaction=TransactionProof(b"\xcd" * 32, 0, (b"\x01",), (b"\x02", b"")),
    accounts=(AccountProof(b"\xee" * 20, (b"\x03",), (SlotProof(b"\x04" * 32, ()),)),),
)


def test_a_bundle_survives_its_file() -> None:
    written = replace(BUNDLE, digest=BUNDLE.computed_digest())
    assert ProofBundle.decode(BUNDLE.encode()) == written
    assert ProofBundle.from_object(json.loads(BUNDLE.encode())) == written


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (b"abab", b"ABab", "block.hash: 0x and lower-case"),
        (b'{"format"', b'{ "format"', "not in canonical form"),
        (b"\n", b"", "not in canonical form"),
        (b'"0x7e2"', b'"0x07e2"', "chainId: a number in hexadecimal"),
        (b'"0x7e2"', b"2018", "chainId: a number in hexadecimal"),
        (b'"consensus"', b'"consensuz"', "missing or unknown: consensus, consensuz"),
        (b"ophion-proof/1", b"ophion-proof/2", "format: expected ophion-proof/1"),
        (b'"votes":["0xc180"]', b'"votes":"0xc180"', "votes: a list is expected"),
        (b'"block":{', b'"block":[{', "not JSON"),
        (b"0xc180", b"0xc18", r"votes\[0\]: 0x and lower-case"),
        (b"eeee", b"ee", r"accounts\[0\].address: 19 bytes instead of 20"),
        (b"qbft", "qbf\u00e9".encode(), "not JSON in ASCII"),
        (b'"qbft"', b'"q\\u0062ft"', "not in canonical form"),
        (b'"qbft"', b'"\\u001b[31m"', "consensus: a name"),
    ],
)
def test_any_other_text_is_refused(old: bytes, new: bytes, problem: str) -> None:
    text = BUNDLE.encode()
    assert old in text
    with pytest.raises(ProofError, match=problem):
        ProofBundle.decode(text.replace(old, new, 1))


def test_deeply_nested_text_is_refused() -> None:
    with pytest.raises(ProofError, match="not JSON"):
        ProofBundle.decode(b"[" * 100_000)
