"""Tests consensus options."""

from __future__ import annotations

from collections import deque
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from ophion.consensus.bft_form_choices import HeaderFormChoice, WireProfileChoice
from ophion.errors import ConfigError
from ophion.node.config import NodeConfig
from ophion.producer.options import ConsensusConfig
from ophion.producer.vote_store_address import read_vote_store
from ophion.runtime.options import load, problems_of, read_flag, specs_of
from tests.unit.self_signed_certificate import self_signed_certificate


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({"ca": "absent"}, "--vote-store-ca-file: .*/absent cannot be read: No such file or directory."),
        ({"ca": "."}, "--vote-store-ca-file: .* cannot be read: Is a directory."),
        ({"ca": "junk"}, "--vote-store-ca-file: .*/junk cannot be used: not a certificate in PEM form."),
        ({"ca": "key.pem"}, "--vote-store-ca-file: .*/key.pem cannot be used: not a certificate in PEM form."),
        ({"certificate": "absent"}, "--vote-store-certificate-file: .*/absent cannot be read: No such file"),
        ({"certificate": "junk"}, "--vote-store-certificate-file: .*/junk cannot be used: not a certificate"),
        (
            {"certificate": "cert.pem"},
            "--vote-store-certificate-file: .*/cert.pem cannot be used: it has no private key",
        ),
        ({"certificate": "cert.pem", "key": "absent"}, "--vote-store-key-file: .*/absent cannot be read: No such file"),
        ({"certificate": "cert.pem", "key": "junk"}, "--vote-store-key-file: .*/junk cannot be used: not the private"),
        ({"certificate": "cert.pem", "key": "other/key.pem"}, "--vote-store-key-file: .* not the private key"),
        ({"certificate": "cert.pem", "key": "encrypted.pem"}, "--vote-store-key-file: .*, or encrypted."),
    ],
)
def test_an_unusable_file_of_the_vote_store_is_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], files: dict[str, str], problem: str
) -> None:
    _, key = self_signed_certificate(tmp_path)
    (tmp_path / "other").mkdir()
    self_signed_certificate(tmp_path / "other")
    (tmp_path / "junk").write_text("junk")
    loaded = serialization.load_pem_private_key(key.read_bytes(), None)
    (tmp_path / "encrypted.pem").write_bytes(
        loaded.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    given = {f"vote_store_{name}_file": tmp_path / file for name, file in files.items()}
    config = ConsensusConfig(vote_store=read_vote_store("etcds://a:1"), **given)
    with pytest.raises(ConfigError, match=problem):
        config.vote_store_tls()
    assert capfd.readouterr() == ("", ""), "OpenSSL does not ask for a password"


def test_rounds_have_a_longest_length() -> None:
    assert ConsensusConfig() == ConsensusConfig(max_round_timeout_s=60.0, follows_others=True)
    options = {flag: spec for spec in specs_of(NodeConfig) for flag in spec.declaration.flags}
    flags = ("--bft-max-round-timeout=7.5", "--bft-early-round-change=false")
    loaded = load(NodeConfig, [read_flag(flag, deque(), options) for flag in flags])
    assert loaded.config.consensus == ConsensusConfig(max_round_timeout_s=7.5, follows_others=False)


def test_a_length_of_nothing_is_refused() -> None:
    (problem,) = problems_of(NodeConfig(consensus=ConsensusConfig(max_round_timeout_s=0)))
    assert problem == "Invalid value for option '--bft-max-round-timeout': 0 is not above 0"


def test_the_wire_profile_is_chosen_or_left_to_the_peers() -> None:
    assert ConsensusConfig().wire_profile is WireProfileChoice.AUTO
    options = {flag: spec for spec in specs_of(NodeConfig) for flag in spec.declaration.flags}
    for choice in WireProfileChoice:
        loaded = load(NodeConfig, [read_flag(f"--bft-wire-profile={choice.value}", deque(), options)])
        assert loaded.config.consensus.wire_profile is choice
    with pytest.raises(ConfigError, match="--bft-wire-profile"):
        load(NodeConfig, [read_flag("--bft-wire-profile=modern", deque(), options)])


def test_the_form_of_headers_is_chosen_or_left_to_the_network() -> None:
    assert ConsensusConfig().header_form is HeaderFormChoice.AUTO
    options = {flag: spec for spec in specs_of(NodeConfig) for flag in spec.declaration.flags}
    for choice in HeaderFormChoice:
        loaded = load(NodeConfig, [read_flag(f"--bft-header-form={choice.value}", deque(), options)])
        assert loaded.config.consensus.header_form is choice
    with pytest.raises(ConfigError, match="--bft-header-form"):
        load(NodeConfig, [read_flag("--bft-header-form=long", deque(), options)])
