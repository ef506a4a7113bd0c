"""Requests in the protocol of Tessera: what a caller without a proven key can reach."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import pytest

from ophion.enclave.embedded import EnclaveSettings
from ophion.enclave.group_record import GroupRecord
from ophion.enclave.interface import GroupType
from ophion.enclave.tessera.groups import encode_group
from ophion.enclave.tessera.party_info import PartyInfo
from ophion.enclave.tessera.payloads import encode_payload
from ophion.enclave.tessera.sealed_payloads import group_in, payload_for
from ophion.enclave_http import rate_limits
from ophion.enclave_http.peer_application import peer_service
from ophion.enclave_http.tessera_peers import TesseraPeers
from ophion.errors import DecodeError
from ophion.native.enclave import EnclaveKeyring
from ophion.primitives import rlp
from ophion.runtime.clock import SystemClock, SystemEntropy
from ophion.runtime.http_client import HttpClient, HttpReply
from ophion.testing.enclaves import EnclaveMember

CLOCK, ENTROPY = SystemClock(), SystemEntropy()
OTHER = EnclaveKeyring([b"\x07" * 32])
[OTHER_KEY] = OTHER.public_keys
OCTETS = {"Content-Type": "application/octet-stream"}


@asynccontextmanager
async def served(member: EnclaveMember) -> AsyncIterator[HttpClient]:
    peers = TesseraPeers((), "http://own.example:9001", member.enclave, ENTROPY)
    service = peer_service(member.enclave, "127.0.0.1", 0, CLOCK, ENTROPY, None, peers)
    is_ready = asyncio.Event()
    task = asyncio.create_task(service.run(is_ready.set))
    await is_ready.wait()
    try:
        yield HttpClient(f"http://127.0.0.1:{service.port}")
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def sealed(text: bytes, recipient: bytes, randomness: int = 1, ring: EnclaveKeyring = OTHER) -> bytes:
    """Return the bytes of a payload as Tessera sends them to one recipient."""
    [sender] = ring.public_keys
    _, record = ring.seal(text, sender, [recipient, sender], 2, bytes(32), bytes([randomness]) * 80)
    payload = payload_for(record, recipient)
    assert payload is not None
    return encode_payload(payload, b"")


def transaction(*members: bytes) -> bytes:
    return b64encode(rlp.encode([b""] * 9 + [members[0], list(members[1:]), b"restricted"]))


def asked(member: EnclaveMember, method: str, path: str, *bodies: bytes) -> list[HttpReply]:
    async def story() -> list[HttpReply]:
        async with served(member) as client:
            return [await client.request(method, path, body, OCTETS) for body in bodies]

    return asyncio.run(story())


def test_it_says_what_it_is(tmp_path: Path) -> None:
    member = EnclaveMember(tmp_path, 1)
    [info] = asked(member, "GET", "/partyinfo", b"")
    assert PartyInfo.decode_json(bytes(info.body)).keys == ((member.key, "http://own.example:9001/"),)
    [versions] = asked(member, "GET", "/version/api", b"")
    assert orjson.loads(versions.body) == ["1", "3.0"]
    assert asked(member, "GET", "/upcheck", b"")[0].body == b"I'm up!"


def test_an_uuid_proves_the_key_and_nothing_else_is_decrypted(tmp_path: Path) -> None:
    member = EnclaveMember(tmp_path, 1)
    uuid = b"01234567-89ab-cdef-0123-456789abcdef"
    right, secret, foreign, large = asked(
        member,
        "POST",
        "/partyinfo/validate",
        sealed(uuid, member.key),
        sealed(transaction(OTHER_KEY, member.key), member.key),
        sealed(uuid, OTHER_KEY),
        sealed(uuid * 200, member.key),
    )
    assert (right.status, bytes(right.body)) == (200, uuid)
    assert [one.status for one in (secret, foreign, large)] == [400, 400, 400]
    assert transaction(OTHER_KEY, member.key) not in secret.body


def test_the_box_proves_the_sender(tmp_path: Path) -> None:
    member = EnclaveMember(tmp_path, 1)
    good = sealed(transaction(OTHER_KEY, member.key), member.key)
    thief = EnclaveKeyring([b"\x09" * 32])
    forged = sealed(transaction(OTHER_KEY, member.key), member.key, ring=thief).replace(thief.public_keys[0], OTHER_KEY)
    stored, again, not_opened = asked(member, "POST", "/push", good, good, forged)
    assert [stored.status, again.status, not_opened.status] == [201, 201, 400]
    assert stored.body == again.body
    [found] = asyncio.run(member.enclave.receive_many(member.late))
    assert found is not None
    assert found.sender == OTHER_KEY


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (lambda own: b"", 400),
        (lambda own: b"\xbf", 400),
        (lambda own: sealed(b"text", own), 400),
        (lambda own: sealed(transaction(OTHER_KEY, own), OTHER_KEY), 400),
        # the transaction names another sender
        (lambda own: sealed(transaction(own, OTHER_KEY), own), 403),
        # this enclave is not in the group
        (lambda own: sealed(transaction(OTHER_KEY, b"\x05" * 32), own), 201),
        # a created group that this enclave does not know
        (lambda own: sealed(b64encode(rlp.encode([b""] * 9 + [OTHER_KEY, b"i" * 32, b"restricted"])), own), 400),
    ],
)
def test_other_payloads_are_refused(tmp_path: Path, content: Callable[[bytes], bytes], status: int) -> None:
    member = EnclaveMember(tmp_path, 1)
    [answer] = asked(member, "POST", "/push", content(member.key))
    assert answer.status == status, bytes(answer.body)
    assert bool(member.late) == (status == 201)


def test_own_payloads_are_not_taken_back(tmp_path: Path) -> None:
    member = EnclaveMember(tmp_path, 1)
    own = EnclaveKeyring(member.secrets)
    [answer] = asked(member, "POST", "/push", sealed(transaction(member.key, OTHER_KEY), member.key, ring=own))
    assert answer.status in (400, 403)
    assert not member.late


def test_a_group_of_an_unknown_caller_is_refused(tmp_path: Path) -> None:
    member = EnclaveMember(tmp_path, 1)
    members = (member.key, OTHER_KEY)
    group = GroupRecord(GroupType.PANTHEON, "name", "text", members, bytes(20), OTHER_KEY)
    [answer, wrong] = asked(member, "POST", "/pushPrivacyGroup", encode_group(group), b"no group")
    assert (answer.status, wrong.status) == (403, 400)
    assert asyncio.run(member.enclave.group(group.id)) is None


def test_party_infos_of_unknown_callers_change_nothing(tmp_path: Path) -> None:
    member = EnclaveMember(tmp_path, 1)
    info = PartyInfo("http://elsewhere.example/", ((OTHER_KEY, "http://elsewhere.example/"),), ())
    [answer, wrong] = asked(member, "POST", "/partyinfo", info.encode(), b"\xff" * 40)
    assert (answer.status, wrong.status) == (200, 400)
    assert PartyInfo.decode(bytes(answer.body)) == PartyInfo("http://own.example:9001/", (), ())
    assert not member.enclave.directory.known()


def test_with_node_permissions_unknown_senders_make_no_groups(tmp_path: Path) -> None:
    member = EnclaveMember(tmp_path, 1)
    member.close()
    member.open(EnclaveSettings(is_restricted=True))
    [answer] = asked(member, "POST", "/push", sealed(transaction(OTHER_KEY, member.key), member.key))
    assert answer.status == 403
    assert not member.late


def test_unknown_senders_share_one_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    member = EnclaveMember(tmp_path, 1)
    monkeypatch.setattr(rate_limits, "_BURST_BYTES", 100_000)
    monkeypatch.setattr("ophion.enclave_http.tessera_requests._TIMEOUT_S", 0.05)
    monkeypatch.setattr(rate_limits, "_BYTES_A_SECOND", 1)
    bodies = [sealed(transaction(OTHER_KEY, member.key), member.key, number) for number in range(1, 10)]
    statuses = [one.status for one in asked(member, "POST", "/push", *bodies)]
    assert statuses[0] == 201
    assert statuses[-1] == 503
    assert 0 < len(member.late) < len(bodies)


def test_a_large_private_transaction_is_decoded_beside_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A megabyte of text takes tens of milliseconds, and anyone can seal it for a public key of this enclave."""
    member = EnclaveMember(tmp_path, 1)
    run, works = member.lanes.peers.run, []

    async def noted(work: Callable[[], object], deadline_s: float | None = None) -> object:
        works.append(getattr(work, "func", None))
        return await run(work, deadline_s)

    monkeypatch.setattr(member.lanes.peers, "run", noted)
    text = b64encode(rlp.encode([b"\x01" * 700_000, *[b""] * 8, OTHER_KEY, [member.key], b"restricted"]))
    small, large = asked(
        member, "POST", "/push", sealed(transaction(OTHER_KEY, member.key), member.key), sealed(text, member.key, 2)
    )
    assert (small.status, large.status) == (201, 201)
    assert works.count(group_in) == 1


def test_a_private_transaction_with_too_many_items_is_refused_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GroupRecord, "encode", lambda self: pytest.fail("the group is too large to be encoded"))
    for recipients in ([bytes(32)] * 5000, [b""] * 60_000, [[]] * 60_000):
        text = b64encode(rlp.encode([b""] * 9 + [OTHER_KEY, recipients, b"restricted"]))
        with pytest.raises(DecodeError):
            group_in(text, lambda group: pytest.fail("no group id"))


def test_requests_of_unknown_callers_leave_places_to_members(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests above the rate limit wait. Unknown callers may not fill all places of pending requests."""
    monkeypatch.setattr(rate_limits, "_BURST_BYTES", 64 * 1024)
    monkeypatch.setattr(rate_limits, "_BYTES_A_SECOND", 1024)
    member = EnclaveMember(tmp_path, 1)

    async def story() -> tuple[list[int], int]:
        async with served(member) as client:
            callers = [HttpClient(client.url) for _ in range(300)]
            asking = [
                asyncio.create_task(one.request("POST", "/push", sealed(b"text", member.key), OCTETS))
                for one in callers[:240]
            ]
            await asyncio.sleep(1)
            waiting = sum(not one.done() for one in asking)
            refused = [one.result().status for one in asking if one.done()]
            for one in asking:
                one.cancel()
            await asyncio.gather(*asking, return_exceptions=True)
            return refused, waiting

    refused, waiting = asyncio.run(story())
    assert waiting <= rate_limits.MAX_UNKNOWN_WAITING
    assert 503 in refused
