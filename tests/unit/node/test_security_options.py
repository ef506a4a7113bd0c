"""Options of tokens and TLS."""

from __future__ import annotations

from pathlib import Path

import pytest

from ophion.node.security_options import HttpSecurityConfig, WebSocketSecurityConfig
from ophion.rpc.auth.settings import JwtAlgorithm

BOTH = pytest.mark.parametrize(
    ("config", "label"), [(HttpSecurityConfig, "HTTP"), (WebSocketSecurityConfig, "WebSocket")]
)
Config = type[HttpSecurityConfig] | type[WebSocketSecurityConfig]


@BOTH
def test_nothing_is_asked_for_unless_it_is_switched_on(config: Config, label: str) -> None:
    assert list(config(credentials_file=Path("none")).problems()) == []
    assert config().auth() is None
    assert config().tls() is None


@BOTH
def test_tokens_need_users_or_an_issuer(config: Config, label: str) -> None:
    assert list(config(authentication_enabled=True).problems()) == [
        f"Unable to authenticate JSON-RPC {label} endpoint without a supplied credentials file"
    ]


@BOTH
def test_files_are_looked_at(config: Config, label: str, tmp_path: Path) -> None:
    users = tmp_path / "users.toml"
    users.write_text("[Users.ali]")
    chosen = config(authentication_enabled=True, credentials_file=users)
    assert list(chosen.problems()) == ["RPC user specified without password."]
    [problem] = config(authentication_enabled=True, public_key_file=tmp_path / "none").problems()
    assert "No such file" in problem
    [problem] = config(tls_enabled=True).problems()
    assert "-keystore-file is missing" in problem


@BOTH
def test_options_become_settings(config: Config, label: str) -> None:
    auth = config(
        authentication_enabled=True,
        public_key_file=Path("key.pem"),
        algorithm=JwtAlgorithm.ES256,
        open_methods=("net_version",),
    ).auth()
    assert auth is not None
    assert (auth.public_key_file, auth.algorithm, auth.exempt_methods) == (
        Path("key.pem"),
        JwtAlgorithm.ES256,
        ("net_version",),
    )
