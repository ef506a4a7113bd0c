"""Tests permission files: the documented texts, and no partial writes."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from ophion.errors import RulesError
from ophion.permissions.allow_list_file import NotPersisted, OutOfSync, RulesFile, rewrite
from ophion.permissions.list_requests import ACCOUNTS, NODES

A, B, C = (bytes([number]) * 20 for number in (1, 2, 3))
ENODE = "enode://" + "ab" * 64 + "@127.0.0.1:30303"


def hexed(account: bytes) -> str:
    return f'"0x{account.hex()}"'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "permissions_config.toml"
    file.write_text(f"# ours\naccounts-whitelist=[{hexed(A)},{hexed(B)}]\nnodes-whitelist=[]\nown-key=1\n")
    return file


def problem(file: RulesFile[bytes]) -> str:
    with pytest.raises(RulesError) as raised:
        file.read()
    return raised.value.message


def test_both_spellings_are_read(path: Path) -> None:
    assert list(RulesFile(path, ACCOUNTS).read()) == [A, B]
    path.write_text(path.read_text().replace("whitelist", "allowlist"))
    assert list(RulesFile(path, ACCOUNTS).read()) == [A, B]


def test_both_spellings_at_once_are_refused(path: Path) -> None:
    path.write_text("accounts-whitelist=[]\naccounts-allowlist=[]\n")
    with pytest.raises(RulesError, match="accounts-whitelist and accounts-allowlist are one list"):
        RulesFile(path, ACCOUNTS).read()


def test_the_spelling_found_is_written_back(path: Path) -> None:
    path.write_text(path.read_text().replace("whitelist", "allowlist"))
    RulesFile(path, ACCOUNTS).change([A, B], [C], [])
    assert path.read_text().splitlines()[1] == f"accounts-allowlist=[{hexed(A)},{hexed(B)},{hexed(C)}]"


def test_accounts_in_capitals_are_the_same_accounts(path: Path) -> None:
    path.write_text('accounts-whitelist=["0x' + "AB" * 20 + '", "0x' + "ab" * 20 + '"]')
    assert list(RulesFile(path, ACCOUNTS).read()) == [b"\xab" * 20]


def test_an_enabled_list_whose_key_is_missing(path: Path) -> None:
    path.write_text("other=1")
    assert problem(RulesFile(path, ACCOUNTS)) == (
        f"accounts-whitelist config option missing in TOML config file {path}"
    )
    with pytest.raises(RulesError, match="nodes-whitelist config option missing in TOML config file"):
        RulesFile(path, NODES).read()


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        ("", "it is empty"),
        ("a=[", "Invalid value"),
        ('accounts-whitelist="0x"', "accounts-whitelist is not a list of texts"),
        ("accounts-whitelist=[1]", "accounts-whitelist is not a list of texts"),
    ],
)
def test_an_unreadable_empty_or_invalid_file(path: Path, content: str, cause: str) -> None:
    path.write_text(content)
    assert problem(RulesFile(path, ACCOUNTS)).startswith(
        f"Unable to read permissioning TOML config file : {path} {cause}"
    )


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "none.toml"
    assert problem(RulesFile(path, ACCOUNTS)) == (
        f"Unable to read permissioning TOML config file : {path} No such file or directory"
    )


@pytest.mark.parametrize("text", ["ab" * 20, "0x" + "ab" * 19, "0x" + "zz" * 20, ""])
def test_a_bad_account(path: Path, text: str) -> None:
    path.write_text(f'accounts-whitelist=["{text}"]')
    assert problem(RulesFile(path, ACCOUNTS)) == f"Invalid account {text}"


def test_a_bad_node_is_shown(path: Path) -> None:
    path.write_text('nodes-whitelist=["enode://12@127.0.0.1:1"]')
    with pytest.raises(RulesError, match="enode://12@127.0.0.1:1"):
        RulesFile(path, NODES).read()


def test_a_change_keeps_comments_unknown_keys_and_the_other_list(path: Path) -> None:
    RulesFile(path, ACCOUNTS).change([A, B], [C], [A])
    RulesFile(path, NODES).change([], [NODES.read(ENODE)], [])
    assert path.read_text() == (
        f'# ours\naccounts-whitelist=[{hexed(B)},{hexed(C)}]\nnodes-whitelist=["{ENODE}"]\nown-key=1\n'
    )


def test_a_file_edited_behind_our_back_stays_as_it_is(path: Path) -> None:
    before = path.read_bytes()
    for present in ([A], [A, B, C]):
        with pytest.raises(OutOfSync):
            RulesFile(path, ACCOUNTS).change(present, [b"\4" * 20], [])
    assert path.read_bytes() == before


def test_a_read_only_file_is_not_replaced(path: Path) -> None:
    before = path.read_bytes()
    path.chmod(0o444)
    file = RulesFile(path, ACCOUNTS)
    assert file.is_read_only()
    with pytest.raises(NotPersisted) as raised:
        file.change([A, B], [C], [])
    assert raised.value.detail == f"{path} is read-only"
    assert path.read_bytes() == before


def test_a_disk_that_is_full_in_the_middle_of_a_write_leaves_the_old_file(path: Path) -> None:
    before = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40, limits[1]))
    try:
        with pytest.raises(NotPersisted):
            RulesFile(path, ACCOUNTS).change([A, B], [C], [])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_a_file_that_is_no_longer_readable_is_not_written(path: Path) -> None:
    path.write_text("a=[")
    with pytest.raises(NotPersisted):
        RulesFile(path, ACCOUNTS).change([A, B], [C], [])
    assert path.read_text() == "a=["


def test_mode_and_link_survive(path: Path, tmp_path: Path) -> None:
    path.chmod(0o640)
    link = tmp_path / "link.toml"
    link.symlink_to(path)
    rewrite(link, "a=1")
    assert link.is_symlink()
    assert path.read_bytes() == b"a=1"
    assert path.stat().st_mode & 0o777 == 0o640


def test_the_position_of_an_entry_is_file_and_line(path: Path) -> None:
    file = RulesFile(path, ACCOUNTS)
    assert file.place_of(B) == f"{path}:2"
    assert file.place_of(C) == str(path)
