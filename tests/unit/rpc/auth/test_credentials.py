"""Tests the credentials file and its passwords."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import bcrypt
import pytest

from ophion.rpc.auth.credentials import CredentialsError, User, checked_user, login_warnings, read_users

# The salt is fixed, because test ids contain the hash and must be the same in every test process.
HASH = bcrypt.hashpw(b"open sesame", b"$2a$04$abcdefghijklmnopqrstuu").decode()


def users(text: str, tmp_path: Path) -> dict[str, User]:
    path = tmp_path / "users.toml"
    path.write_text(text)
    return read_users(path)


def test_users_are_read_with_their_permissions(tmp_path: Path) -> None:
    found = users(f'[Users.ali]\npassword = "{HASH}"\npermissions = ["net:*", "eth:blockNumber"]', tmp_path)
    assert found == {"ali": User("ali", HASH, ("net:*", "eth:blockNumber"))}


@pytest.mark.parametrize("line", ["", "permissions = []"])
def test_a_user_may_have_no_permissions(line: str, tmp_path: Path) -> None:
    assert users(f'[Users.ali]\npassword = "{HASH}"\n{line}', tmp_path)["ali"].permissions == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[Users.ali]", "RPC user specified without password."),
        ('[Users.ali]\npassword = ""', "RPC user specified without password."),
        ("[Users.ali]\npassword = 7", "RPC user specified without password."),
        (
            f'[Users.ali]\npassword = "{HASH}"\npermissions = "eth:*"',
            "RPC authentication configuration file contains invalid values.",
        ),
        (
            f'[Users.ali]\npassword = "{HASH}"\ngroups = [1]',
            "RPC authentication configuration file contains invalid values.",
        ),
        ("Users = 3", "RPC authentication configuration file contains invalid values."),
        ("[Users", "Invalid TOML"),
        ("x = " + "[" * 5000, "nested too deeply"),
        (f'[Users.ali]\npassword = "{HASH}"\n#' + "x" * 2**20, "more than 1048576 bytes"),
    ],
)
def test_mistakes_are_named(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(CredentialsError, match=message):
        users(text, tmp_path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CredentialsError, match="No such file"):
        read_users(tmp_path / "nobody.toml")


def test_a_hash_never_appears_in_a_representation() -> None:
    assert HASH not in repr(User("ali", HASH, ()))


KNOWN = {"ali": User("ali", HASH, ("*:*",)), "bad": User("bad", "no hash", ())}


def test_the_right_password_finds_its_user() -> None:
    assert checked_user(KNOWN, "ali", "open sesame") is KNOWN["ali"]


@pytest.mark.parametrize(
    ("name", "password"),
    [
        ("ali", "open"),
        ("ali", ""),
        ("ali", "open sesame\0"),
        ("ali", "x" * 200),
        ("ali", "\ud800"),
        ("bad", "no hash"),
        ("bob", "open sesame"),
        ("", ""),
        ("Ali", "open sesame"),
    ],
)
def test_other_input_matches_no_user(name: str, password: str) -> None:
    assert checked_user(KNOWN, name, password) is None


def test_a_long_password_is_cut_where_bcrypt_ends() -> None:
    hashed = bcrypt.hashpw(b"p" * 72, bcrypt.gensalt(4, b"2a")).decode()
    assert checked_user({"ali": User("ali", hashed, ())}, "ali", "p" * 90) is not None


def test_an_unknown_user_takes_as_long_as_a_wrong_password() -> None:
    costly = {"ali": User("ali", bcrypt.hashpw(b"right", bcrypt.gensalt(8, b"2a")).decode(), ())}

    def seconds(name: str) -> float:
        began = time.thread_time()
        checked_user(costly, name, "wrong")
        return time.thread_time() - began

    pairs = [(seconds("ali"), seconds("bob"), seconds("bad")) for _ in range(15)]
    wrong, unknown, _ = (statistics.median(column) for column in zip(*pairs, strict=True))
    assert 0.5 < unknown / wrong < 2


def test_users_that_can_never_log_in_are_doubted(tmp_path: Path) -> None:
    assert login_warnings(users(f'[Users.a]\npassword = "{HASH}"\n', tmp_path)) == []
    assert login_warnings(users("x = 1\n", tmp_path)) == ["it has no table [Users.NAME], so that no user can log in"]
    [doubt] = login_warnings(users('[Users.a]\npassword = "plain"\n', tmp_path))
    assert doubt.startswith("the password of a is no bcrypt hash")
