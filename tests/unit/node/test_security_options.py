"""Tests options of tokens and TLS."""

from __future__ import annotations

from pathlib import Path

import pytest

from ophion.node.security_options import (
    AuthConfig,
    GraphqlTlsConfig,
    HttpAuthConfig,
    HttpTlsConfig,
    MetricsTlsConfig,
    TlsConfig,
    WebSocketAuthConfig,
    WebSocketTlsConfig,
)
from ophion.rpc.auth.settings import JwtAlgorithm
from ophion.runtime.options import specs_of

AUTH = pytest.mark.parametrize(("config", "label"), [(HttpAuthConfig, "HTTP"), (WebSocketAuthConfig, "WebSocket")])
TLS = pytest.mark.parametrize(
    ("config", "prefix"),
    [
        (HttpTlsConfig, "--rpc-http-tls"),
        (WebSocketTlsConfig, "--rpc-ws-ssl"),
        (GraphqlTlsConfig, "--graphql-tls"),
        (MetricsTlsConfig, "--metrics-tls"),
    ],
)


@AUTH
def test_no_token_is_asked_for_unless_it_is_switched_on(config: type[AuthConfig], label: str) -> None:
    assert list(config(credentials_file=Path("none")).problems()) == []
    assert config().settings() is None


@AUTH
def test_tokens_need_users_or_an_issuer(config: type[AuthConfig], label: str) -> None:
    assert list(config(enabled=True).problems()) == [
        f"Unable to authenticate JSON-RPC {label} endpoint without a supplied credentials file"
    ]


@AUTH
def test_files_of_users_and_keys_are_looked_at(config: type[AuthConfig], label: str, tmp_path: Path) -> None:
    users = tmp_path / "users.toml"
    users.write_text("[Users.ali]")
    chosen = config(enabled=True, credentials_file=users)
    assert list(chosen.problems()) == ["RPC user specified without password."]
    [problem] = config(enabled=True, public_key_file=tmp_path / "none").problems()
    assert "No such file" in problem


@AUTH
def test_options_become_settings(config: type[AuthConfig], label: str) -> None:
    auth = config(
        enabled=True,
        public_key_file=Path("key.pem"),
        algorithm=JwtAlgorithm.ES256,
        open_methods=("net_version",),
    ).settings()
    assert auth is not None
    assert (auth.public_key_file, auth.algorithm, auth.exempt_methods) == (
        Path("key.pem"),
        JwtAlgorithm.ES256,
        ("net_version",),
    )


@TLS
def test_tls_needs_a_key_store_and_is_off_otherwise(config: type[TlsConfig], prefix: str) -> None:
    assert config().settings() is None
    assert list(config().problems()) == []
    assert list(config(enabled=True).problems()) == [f"TLS needs a key store: {prefix}-keystore-file is missing."]


@TLS
def test_every_service_has_the_same_flags_under_its_own_name(config: type[TlsConfig], prefix: str) -> None:
    flags = [spec.flag for spec in specs_of(config)]
    client_auth = "--graphql-mtls-enabled" if config is GraphqlTlsConfig else f"{prefix}-client-auth-enabled"
    assert flags == [
        f"{prefix}-enabled",
        f"{prefix}-keystore-file",
        f"{prefix}-keystore-password-file",
        client_auth,
        f"{prefix}-truststore-file",
        f"{prefix}-known-clients-file",
        f"{prefix}-ca-clients-enabled",
    ]
