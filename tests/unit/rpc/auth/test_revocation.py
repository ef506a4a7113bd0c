"""Tests tokens of changed and unchanged users."""

from __future__ import annotations

from msgspec.structs import replace

from ophion.rpc.auth.credentials import User
from ophion.rpc.auth.revocation import UserRevocations

ALI = User("ali", "$2a$10$one", ("eth:*", "net:*"))
EVE = User("eve", "$2a$10$two", ())


def admits(revocations: UserRevocations, user: User, issued_at: float) -> bool:
    return revocations.admits(user.name, frozenset(user.permissions), issued_at)


def test_users_who_stay_as_they_are_keep_their_tokens() -> None:
    revocations = UserRevocations()
    assert not revocations.update_users({"ali": ALI}, 100.5)
    assert not revocations.update_users({"ali": ALI, "eve": EVE}, 200.0)
    assert revocations.since("ali") == 101
    assert admits(revocations, ALI, 101)
    assert admits(revocations, EVE, 200)


def test_tokens_of_removed_users_are_revoked() -> None:
    revocations = UserRevocations()
    assert not admits(revocations, ALI, 100)
    revocations.update_users({"ali": ALI}, 100.0)
    assert revocations.update_users({"eve": EVE}, 150.0)
    assert not admits(revocations, ALI, 140)
    assert not revocations.update_users({"ali": ALI, "eve": EVE}, 160.0)
    assert not admits(revocations, ALI, 140), "a user that is added again must log in again"


def test_another_password_and_other_permissions_end_tokens() -> None:
    for changed in (replace(ALI, password_hash="$2a$10$new"), replace(ALI, permissions=("net:*",))):
        revocations = UserRevocations()
        revocations.update_users({"ali": ALI}, 100.0)
        assert admits(revocations, ALI, 100)
        assert revocations.update_users({"ali": changed}, 150.2)
        assert not admits(revocations, ALI, 140)
        assert not admits(revocations, changed, 150), "made in the second of the change, perhaps before it"
        assert admits(revocations, changed, revocations.since("ali"))
