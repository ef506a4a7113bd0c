"""Tests valid tokens, and many kinds of invalid tokens."""

from __future__ import annotations

import base64
import hmac
import json
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from hypothesis import given
from hypothesis import strategies as st

from ophion.errors import ConfigError
from ophion.rpc.auth.credentials import User
from ophion.rpc.auth.revocation import UserRevocations
from ophion.rpc.auth.settings import JwtAlgorithm
from ophion.rpc.auth.tokens import LIFETIME_S, MAX_TOKEN_BYTES, TokenIssuer, reader_from_file

NOW = 1_700_000_000.5
ISSUER = TokenIssuer()
PUBLIC_PEM = ISSUER._private_key.public_key().public_bytes(
    serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
)


def b64(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def signed(claims: dict[str, Any], **header: Any) -> bytes:
    return jwt.encode(claims, ISSUER._private_key, algorithm="RS256", headers=header or None).encode()


GOOD: dict[str, Any] = {"permissions": ["eth:*"], "username": "ali", "exp": int(NOW) + 60}


def test_a_token_says_who_may_do_what_and_until_when() -> None:
    token = ISSUER.issue("ali", ("net:*", "eth:call"), NOW).encode()
    claims = ISSUER.read(token, NOW)
    assert claims is not None
    assert claims.username == "ali"
    assert claims.permissions == {"net:*", "eth:call"}
    assert claims.expires_at == int(NOW) + LIFETIME_S


def test_a_token_has_the_claims_clients_know() -> None:
    token = ISSUER.issue("ali", ("net:*",), NOW)
    assert jwt.get_unverified_header(token)["alg"] == "RS256"
    body = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    assert body == {"permissions": ["net:*"], "username": "ali", "iat": int(NOW), "exp": int(NOW) + 300}


def test_one_of_the_second_in_which_its_user_came_is_good_for_five_minutes_too() -> None:
    revocations = UserRevocations()
    revocations.update_users({"ali": User("ali", "$2a$10$one", ())}, 100.5)
    token = TokenIssuer(revocations).issue("ali", (), 100.7)
    body = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    assert (body["iat"], body["exp"]) == (101, 101 + LIFETIME_S)


def test_a_token_ends_after_five_minutes() -> None:
    token = ISSUER.issue("ali", (), NOW).encode()
    assert ISSUER.read(token, NOW + 299) is not None
    assert ISSUER.read(token, NOW + 300) is None


@pytest.mark.parametrize("name", ["exp", "nbf"])
@pytest.mark.parametrize("value", ["Infinity", "-Infinity", "NaN", "1e999", "9" * 400, "true", "null", '"1"', "[1]"])
def test_a_time_is_a_finite_number(name: str, value: str) -> None:
    claims = json.dumps({**GOOD, name: 0}).replace(f'"{name}": 0', f'"{name}": {value}').encode()
    key = ISSUER._private_key
    token = jwt.api_jws.encode(claims, key, algorithm="RS256").encode()
    assert ISSUER.read(token, NOW) is None


def test_tokens_of_another_service_are_worth_nothing() -> None:
    assert TokenIssuer().read(ISSUER.issue("ali", ("*:*",), NOW).encode(), NOW) is None


def test_a_token_without_signature_is_refused() -> None:
    for algorithm in ("none", "None", "NONE", "nOnE"):
        head = b64(json.dumps({"alg": algorithm, "typ": "JWT"}).encode())
        body = b64(json.dumps(GOOD).encode())
        for token in (f"{head}.{body}.", f"{head}.{body}", f"{head}.{body}.{b64(b'x')}"):
            assert ISSUER.read(token.encode(), NOW) is None


@pytest.mark.parametrize("key", [PUBLIC_PEM, PUBLIC_PEM.strip(), b""])
def test_the_public_key_is_no_shared_secret(key: bytes) -> None:
    for algorithm, digest in (("HS256", "sha256"), ("HS512", "sha512")):
        content = b64(json.dumps({"alg": algorithm}).encode()) + "." + b64(json.dumps(GOOD).encode())
        signature = hmac.digest(key, content.encode(), digest)
        assert ISSUER.read(f"{content}.{b64(signature)}".encode(), NOW) is None


def test_a_key_that_comes_with_the_token_is_not_used() -> None:
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    key = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(other.public_key()))
    headers = {"jwk": key, "kid": "../../dev/null", "jku": "http://127.0.0.1:1/"}
    token = jwt.encode(GOOD, other, algorithm="RS256", headers=headers)
    assert ISSUER.read(token.encode(), NOW) is None


def test_another_algorithm_of_the_same_key_is_refused() -> None:
    for algorithm in ("RS384", "RS512", "PS256"):
        assert ISSUER.read(jwt.encode(GOOD, ISSUER._private_key, algorithm=algorithm).encode(), NOW) is None


@pytest.mark.parametrize(
    "change",
    [
        {"exp": None},
        {"exp": "soon"},
        {"exp": True},
        {"exp": int(NOW)},
        {"exp": -1},
        {"exp": 10**400},
        {"nbf": int(NOW) + 30},
        {"nbf": "x"},
        {"permissions": "*:*"},
        {"permissions": {"*:*": 1}},
    ],
)
def test_claims_that_make_no_sense_are_refused(change: dict[str, Any]) -> None:
    assert ISSUER.read(signed({**GOOD, **change}), NOW) is None


def test_a_token_without_an_end_is_refused() -> None:
    assert ISSUER.read(signed({"permissions": ["*:*"]}), NOW) is None


def test_entries_that_are_no_text_permit_nothing() -> None:
    claims = ISSUER.read(signed({**GOOD, "permissions": [1, None, ["*:*"], "net:*"]}), NOW)
    assert claims is not None
    assert claims.permissions == {"net:*"}


def test_a_token_is_not_read_when_it_is_too_long() -> None:
    assert ISSUER.read(signed({**GOOD, "x": "y" * MAX_TOKEN_BYTES}), NOW) is None


@given(st.binary(max_size=200))
def test_any_bytes_are_answered(token: bytes) -> None:
    assert ISSUER.read(token, NOW) is None


@given(st.data())
def test_no_byte_of_a_token_can_be_changed(data: st.DataObject) -> None:
    token = bytearray(signed(GOOD))
    place = data.draw(st.integers(0, len(token) - 2))
    token[place] = data.draw(st.integers(0, 255).filter(lambda byte: byte != token[place]))
    assert ISSUER.read(bytes(token), NOW) is None


def key_file(path: Path, key: Any) -> Path:
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    path.write_bytes(public)
    return path


@pytest.mark.parametrize(
    ("algorithm", "curve"),
    [
        (JwtAlgorithm.RS256, None),
        (JwtAlgorithm.RS512, None),
        (JwtAlgorithm.ES256, ec.SECP256R1()),
        (JwtAlgorithm.ES384, ec.SECP384R1()),
        (JwtAlgorithm.ES512, ec.SECP521R1()),
    ],
)
def test_tokens_of_an_issuer_elsewhere(algorithm: JwtAlgorithm, curve: Any, tmp_path: Path) -> None:
    key: Any = rsa.generate_private_key(65537, 2048) if curve is None else ec.generate_private_key(curve)
    reader = reader_from_file(key_file(tmp_path / "key.pem", key), algorithm)
    token = jwt.encode(GOOD, key, algorithm=algorithm.value).encode()
    assert reader.read(token, NOW) is not None
    assert reader.read(signed(GOOD), NOW) is None


def test_a_shared_secret_of_an_issuer_elsewhere(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s" * 32 + "\n")
    reader = reader_from_file(secret, JwtAlgorithm.HS256)
    assert reader.read(jwt.encode(GOOD, "s" * 32, algorithm="HS256").encode(), NOW) is not None


@pytest.mark.parametrize(
    ("content", "algorithm", "message"),
    [
        (b"nothing", JwtAlgorithm.RS256, "holds no key for RS256"),
        (PUBLIC_PEM, JwtAlgorithm.ES256, "holds no key for ES256"),
        (PUBLIC_PEM, JwtAlgorithm.HS256, "holds no key for HS256"),
        (b"short", JwtAlgorithm.HS256, "fewer than 32 bytes"),
    ],
)
def test_a_key_file_must_fit_its_algorithm(
    content: bytes, algorithm: JwtAlgorithm, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "key.pem"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=message):
        reader_from_file(path, algorithm)


def test_a_missing_key_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        reader_from_file(tmp_path / "none.pem", JwtAlgorithm.RS256)
