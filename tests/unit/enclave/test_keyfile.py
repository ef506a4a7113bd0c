"""Tests key files of enclaves: the public test pairs, both formats, and invalid files."""

from __future__ import annotations

import json
import stat
from base64 import b64decode, b64encode
from pathlib import Path

import pytest

from ophion.enclave.key_loading import open_keys
from ophion.enclave.keyfile import KeyPair, new_pair, public_file_of, read_pair, read_public, write_pair
from ophion.enclave.options import EnclaveConfig
from ophion.errors import ConfigError, KeyFileError
from ophion.runtime.clock import SystemEntropy

ENTROPY = SystemEntropy()

PAIRS = [
    ("hBsuQsGJzx4QHmFmBkNoI7YGnTmaZP4P+wBOdu56ljk=", "A1aVtMxLCUHmBVHXoZzzBgPbW/wj5axDpW9X8l91SGo="),
    ("wjeHURxQJUqZvhjMv+lxoRlXYnX/mpm0Iu/ldBr32Qs=", "Ko2bVqD+nNlNYL5EE7y3IdOnviftjiizpjRt+HTuFBs="),
    ("QmBfzDOxF99iInkXAPBAZpQQfelvPmHqbcO8tNHYtJM=", "k2zXEin4Ip/qBGlRkJejnGWdP9cjkK+DAvKNW31L2C8="),
]
"""The public test keys of privacy.md 16."""


@pytest.mark.parametrize(("secret", "public"), PAIRS)
def test_the_published_pairs_belong_together(secret: str, public: str, tmp_path: Path) -> None:
    file = tmp_path / "nodeKey.key"
    file.write_text(json.dumps({"data": {"bytes": secret}, "type": "unlocked"}))
    assert read_pair(file).public == b64decode(public)


def test_what_is_written_is_read_again_and_belongs_to_its_owner(tmp_path: Path) -> None:
    pair = new_pair(ENTROPY)
    for name, password in (("a.key", None), ("b.key", b"a password")):
        write_pair(tmp_path / name, pair, ENTROPY, password)
        assert read_pair(tmp_path / name, password) == pair
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
        assert read_public(public_file_of(tmp_path / name)) == pair.public
    assert b64encode(pair.secret).decode() not in (tmp_path / "b.key").read_text()
    assert repr(pair.secret) not in repr(pair)


def test_a_wrong_and_a_missing_password_have_different_errors(tmp_path: Path) -> None:
    write_pair(tmp_path / "a.key", new_pair(ENTROPY), ENTROPY, b"right")
    with pytest.raises(KeyFileError, match="the password is wrong"):
        read_pair(tmp_path / "a.key", b"wrong")
    with pytest.raises(KeyFileError, match="no password was given"):
        read_pair(tmp_path / "a.key")


def test_keys_are_never_overwritten(tmp_path: Path) -> None:
    write_pair(tmp_path / "a.key", new_pair(ENTROPY), ENTROPY)
    before = (tmp_path / "a.key").read_text()
    with pytest.raises(KeyFileError, match="never overwritten"):
        write_pair(tmp_path / "a.key", new_pair(ENTROPY), ENTROPY)
    assert (tmp_path / "a.key").read_text() == before


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"type": "unlocked", "data": {"bytes": "c2hvcnQ="}}',
        '{"type": "unlocked", "data": {"bytes": 7}}',
        '{"type": "sodium-encrypted", "data": {"bytes": "x"}}',
        '{"type": "argon2sbox", "data": {}}',
        '{"type": "argon2sbox", "data": {"aopts": {"variant": "id", "memory": "4294967295", "iterations": "1",'
        ' "parallelism": "1"}, "asalt": "c2FsdHNhbHRzYWx0c2FsdA==", "snonce": "' + "A" * 32 + '", "sbox": "eA=="}}',
        "[" * 100_000,
        "\xff",
    ],
)
def test_whatever_is_no_key_is_refused_in_one_line(content: str, tmp_path: Path) -> None:
    file = tmp_path / "nodeKey.key"
    file.write_text(content)
    with pytest.raises(KeyFileError, match=str(file)):
        read_pair(file, b"password")


def test_a_public_key_may_stand_between_spaces(tmp_path: Path) -> None:
    file = tmp_path / "nodeKey.pub"
    file.write_text(f"  {PAIRS[0][1]}\n")
    assert read_public(file) == b64decode(PAIRS[0][1])
    for wrong in ("", "AAAA", PAIRS[0][1] + "AAAA", "ü" * 44):
        file.write_text(wrong)
        with pytest.raises(KeyFileError, match="44 characters"):
            read_public(file)


def test_the_first_start_makes_a_key_and_the_next_one_uses_it(tmp_path: Path) -> None:
    [made] = open_keys(EnclaveConfig(), tmp_path, ENTROPY)
    assert (tmp_path / "privacy" / "nodeKey.pub").read_text() == b64encode(made.public).decode()
    assert open_keys(EnclaveConfig(), tmp_path, ENTROPY) == [made]
    assert open_keys(EnclaveConfig(), tmp_path, ENTROPY, lambda: True) == [made]
    with pytest.raises(KeyFileError, match="is missing, and this database holds private payloads"):
        open_keys(EnclaveConfig(), tmp_path / "restored", ENTROPY, lambda: True)
    assert not (tmp_path / "restored").exists()


def test_the_public_key_file_chooses_the_default_among_the_tenants(tmp_path: Path) -> None:
    pairs = [new_pair(ENTROPY), new_pair(ENTROPY)]
    files = (tmp_path / "a.key", tmp_path / "b.key")
    for file, pair in zip(files, pairs, strict=True):
        write_pair(file, pair, ENTROPY)
    config = EnclaveConfig(key_files=files, public_key_file=tmp_path / "b.pub")
    assert open_keys(config, tmp_path, ENTROPY) == pairs[::-1]
    unlisted_pair: KeyPair = new_pair(ENTROPY)
    write_pair(tmp_path / "c.key", unlisted_pair, ENTROPY)
    with pytest.raises(ConfigError, match="no key of the embedded enclave"):
        open_keys(EnclaveConfig(key_files=files, public_key_file=tmp_path / "c.pub"), tmp_path, ENTROPY)
    with pytest.raises(ConfigError, match="twice"):
        open_keys(EnclaveConfig(key_files=(files[0], files[0])), tmp_path, ENTROPY)
    with pytest.raises(KeyFileError, match=r"none\.key"):
        open_keys(EnclaveConfig(key_files=(tmp_path / "none.key",)), tmp_path, ENTROPY)


def test_passwords_come_line_by_line(tmp_path: Path) -> None:
    pairs = [new_pair(ENTROPY), new_pair(ENTROPY)]
    write_pair(tmp_path / "a.key", pairs[0], ENTROPY)
    write_pair(tmp_path / "b.key", pairs[1], ENTROPY, b"second")
    (tmp_path / "passwords").write_text("\nsecond\n")
    config = EnclaveConfig(key_files=(tmp_path / "a.key", tmp_path / "b.key"), password_file=tmp_path / "passwords")
    assert open_keys(config, tmp_path, ENTROPY) == pairs
