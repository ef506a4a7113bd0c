"""Attacks of an unknown enclave on a member of private transactions, over the enclave port and with free markers.

The attacker invents enclave keys. The honest client uses a private group of the node's own key.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Sequence
from typing import Any

import jwt

from ophion.enclave.group_ids import legacy_id
from ophion.enclave.group_record import GroupRecord
from ophion.enclave.interface import EnclaveUnreachable, GroupType
from ophion.enclave.payload_quota import MAX_BYTES, MAX_UNKNOWN_GROUPS
from ophion.enclave.remote.http import HttpClient, HttpError
from ophion.enclave.tessera.fields import encode_field, encode_fields, encode_number
from ophion.enclave.tessera.party_info import PartyInfo
from ophion.enclave.tessera.payloads import encode_payload
from ophion.enclave.tessera.sealed_payloads import payload_for
from ophion.enclave_http.envelope import Envelope, open_answer, seal_request
from ophion.enclave_http.peer_application import _MAX_BODY_BYTES
from ophion.native.crypto import PrivateKey
from ophion.native.enclave import EnclaveKeyring
from ophion.native.privacy import sign_private_transaction
from ophion.peers.priv import messages
from ophion.primitives import rlp
from ophion.privacy.options import DEFAULT_MAX_GAS
from ophion.runtime.clock import SystemEntropy
from ophion.testing.private_transactions import ENCLAVE_KEYS, NUMBER_CONTRACT, text
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.abuse.target import Target, Unanswered, call, expect, post
from tests.abuse.target import ask as answered
from tests.unit.privacy.test_tenant_authorizer import REQUESTS, UNKNOWN, About

ACCOUNT = "0x" + DEV_KEYS[0].address.hex()
NO_SIGNER: Any = None
CHAIN_ID = 2018
ENTROPY = SystemEntropy()
PRECOMPILE = (126).to_bytes(20, "big")
LOOP = bytes.fromhex("5b61040060002050600056")
"""Init code that hashes until its gas is used up. It is the slowest of eight measured loops."""
MAX_BEHIND_S = 2.0
GROUPS_AT_ONCE = 200
MAX_POLLS = 2000


async def ask(target: Target, name: str, *params: Any) -> Any:
    """Return the result of a request that must succeed."""
    answer = await answered(target, name, *params)
    if "result" not in answer:
        raise Unanswered(f"{name}: {answer}")
    return answer["result"]


async def polled(target: Target, name: str, marker: str) -> Any:
    """Repeat a request until it has a result."""
    for _ in range(MAX_POLLS):
        found = await ask(target, name, marker)
        if found is not None:
            return found
        await asyncio.sleep(0.05)
    raise Unanswered(f"{name}: no result")


class UnknownEnclave:
    """An attacker with invented enclave keys, and an account that sends markers."""

    def __init__(self, target: Target, victim: bytes) -> None:
        self._target = target
        self._victim = victim

    def keyring(self) -> EnclaveKeyring:
        return EnclaveKeyring([ENTROPY.token(32)])

    async def push(self, ring: EnclaveKeyring, path: str, bodies: Sequence[bytes]) -> list[str]:
        """Push bodies. Returns the refusal of each body; the text is empty for an accepted body."""
        assert self._target.enclave is not None
        sender = ring.public_keys[0]
        sealed = seal_request(ring, ENTROPY, sender, self._victim, path.encode(), rlp.encode(list(bodies)))
        client = HttpClient(self._target.enclave.url)
        try:
            answer = await client.post(path, sealed.encode(), "application/json")
        finally:
            client.close()
        expect(answer.status == 200, f"status {answer.status}")
        opened = open_answer(ring, sealed, Envelope.decode(bytes(answer.body)))
        assert opened is not None
        return [ack.reason for ack in messages.read_acks(opened)]

    def payload(self, ring: EnclaveKeyring, content: bytes) -> tuple[bytes, bytes]:
        sender = ring.public_keys[0]
        members = [self._victim, sender]
        return ring.seal(b64encode(content), sender, members, 2, legacy_id(members), ENTROPY.token(80))

    def looping(self, ring: EnclaveKeyring, gas: int) -> bytes:
        return sign_private_transaction(
            PrivateKey(ENTROPY.token(32)).secret(),
            nonce=0,
            gas_price=0,
            gas_limit=gas,
            to=None,
            data=LOOP,
            private_from=ring.public_keys[0],
            private_for=[self._victim],
            chain_id=CHAIN_ID,
        )

    async def mark(self, keys: Sequence[bytes]) -> list[str]:
        """Send markers of these payloads and return their hashes."""
        markers = []
        account = DEV_KEYS[1]
        nonce = int(await ask(self._target, "eth_getTransactionCount", "0x" + account.address.hex(), "pending"), 16)
        for index, key in enumerate(keys):
            raw = legacy_transaction(
                account, nonce + index, to=PRECOMPILE, data=key, gas=60_000, gas_price=0, chain_id=CHAIN_ID
            )
            markers.append(await ask(self._target, "eth_sendRawTransaction", "0x" + raw.hex()))
        return markers


class Member:
    """The honest client, which sends private transactions in the group of the node's own key."""

    def __init__(self, target: Target, key: bytes) -> None:
        self._target = target
        self._key = key
        self._account = PrivateKey(ENTROPY.token(32))
        self._nonce = 0

    async def behind_s(self) -> float:
        """Return the seconds from the block of a marker to the private result."""
        raw = sign_private_transaction(
            self._account.secret(),
            nonce=self._nonce,
            gas_price=0,
            gas_limit=1_000_000,
            to=None,
            data=NUMBER_CONTRACT,
            private_from=self._key,
            private_for=[],
            chain_id=CHAIN_ID,
        )
        self._nonce += 1
        marker = await ask(self._target, "eea_sendRawTransaction", "0x" + raw.hex())
        await polled(self._target, "eth_getTransactionReceipt", marker)
        began = time.perf_counter()
        receipt = await polled(self._target, "priv_getTransactionReceipt", marker)
        expect(receipt["status"] == "0x1", f"an honest private transaction has status {receipt['status']}")
        return time.perf_counter() - began


def tell(figures: str) -> None:
    """Print the figures of an attack above its row in the result table."""
    sys.stdout.write(figures + "\n")


async def sides(target: Target) -> tuple[UnknownEnclave, Member]:
    status: dict[str, Any] = await ask(target, "priv_status")
    key = b64decode(status["keys"][0])
    return UnknownEnclave(target, key), Member(target, key)


async def gas(target: Target) -> None:
    """Attack with invented groups. Each group has a transaction with the highest gas limit that the node accepts."""
    attacker, member = await sides(target)
    before = await member.behind_s()
    ring = attacker.keyring()
    _, record = attacker.payload(ring, attacker.looping(ring, 20 * DEFAULT_MAX_GAS))
    (refusal,) = await attacker.push(ring, "/push", [record])
    expect("gas limit" in refusal, f"a transaction with 10^9 gas was answered with '{refusal}'")
    keys = []
    for _ in range(target.count(8, 3)):
        ring = attacker.keyring()
        key, record = attacker.payload(ring, attacker.looping(ring, DEFAULT_MAX_GAS))
        expect(await attacker.push(ring, "/push", [record]) == [""], "a payload within the limits was refused")
        keys.append(key)
    markers = await attacker.mark(keys)
    behind = [await member.behind_s() for _ in range(target.count(20, 3))]
    tell(
        f"    {len(keys)} times {DEFAULT_MAX_GAS:,} gas: an honest group is at most {max(behind):.2f} s behind"
        f" (before {before:.2f} s)"
    )
    for marker in markers:  # wait until all payloads are executed, so that the memory is measured afterwards
        await polled(target, "priv_getTransactionReceipt", marker)
    expect(max(behind) <= MAX_BEHIND_S, f"an honest group is {max(behind):.1f} s behind")


async def groups(target: Target) -> None:
    """Attack with 15,000 groups of invented creators. The node's own groups must keep working."""
    attacker, member = await sides(target)
    status: dict[str, Any] = await ask(target, "priv_status")
    victim = b64decode(status["keys"][0])
    accepted = sent = 0
    while sent < target.count(15_000, 400):
        ring = attacker.keyring()
        maker = ring.public_keys[0]
        records = [
            GroupRecord(GroupType.PANTHEON, "", "", (victim, maker), ENTROPY.token(20), maker)
            for _ in range(GROUPS_AT_ONCE)
        ]
        accepted += (await attacker.push(ring, "/pushPrivacyGroup", [one.encode() for one in records])).count("")
        sent += len(records)
    made = await ask(target, "priv_createPrivacyGroup", {"addresses": [text(victim)]})
    behind = await member.behind_s()
    tell(f"    {sent} groups of strangers: {accepted} kept, an own group made, honest group {behind:.2f} s behind")
    expect(accepted <= MAX_UNKNOWN_GROUPS, f"{accepted} groups of strangers are kept")
    expect(isinstance(made, str), "no own group can be made")


async def payloads(target: Target) -> None:
    """Attack with 100 payloads of a megabyte from invented senders. The node's own payloads must keep working."""
    attacker, member = await sides(target)
    stored_bytes = 0
    sent = target.count(100, 4)
    for _ in range(sent):
        ring = attacker.keyring()
        _, record = attacker.payload(ring, ENTROPY.token(1_000_000))
        stored_bytes += len(record) * (await attacker.push(ring, "/push", [record])).count("")
    behind = await member.behind_s()
    tell(f"    {sent} payloads of strangers: {stored_bytes / 1e6:.0f} MB kept, honest group {behind:.2f} s behind")
    expect(stored_bytes <= MAX_BYTES, f"{stored_bytes} bytes of strangers are kept")


async def tessera(target: Target) -> None:
    """Attack with 40 callers of the Tessera protocol: the largest payloads, groups and party infos, and replays."""
    status: dict[str, Any] = await ask(target, "priv_status")
    bodies = _tessera_bodies(b64decode(status["keys"][0]))
    await _called(target, "Tessera callers", bodies, "application/octet-stream")


async def envelopes(target: Target) -> None:
    """Attack with 40 callers that send the largest envelopes of other senders to the enclave port, as fast as it
    answers.
    """
    status: dict[str, Any] = await ask(target, "priv_status")
    victim = b64decode(status["keys"][0])
    size = _MAX_BODY_BYTES * 3 // 4 - 4096
    bodies = [
        ("/push", Envelope(ENTROPY.token(32), victim, ENTROPY.token(24), ENTROPY.token(size)).encode()),
        ("/push", Envelope(victim, victim, ENTROPY.token(24), ENTROPY.token(size)).encode()),
        ("/fetch", Envelope(ENTROPY.token(32), ENTROPY.token(32), ENTROPY.token(24), ENTROPY.token(100_000)).encode()),
        ("/push", b"[" * size),
    ]
    await _called(target, "envelopes", bodies, "application/json")


async def _called(target: Target, what: str, bodies: Sequence[tuple[str, bytes]], media_type: str) -> None:
    """Send requests from 40 callers, while the honest group is used. Raises an error if that group falls behind."""
    _, member = await sides(target)
    statuses: Counter[int] = Counter()
    end = time.monotonic() + max(3.0, 20 * target.scale)

    async def caller(number: int) -> None:
        assert target.enclave is not None
        while time.monotonic() < end:
            client = HttpClient(target.enclave.url)
            try:
                while time.monotonic() < end:
                    path, body = bodies[number % len(bodies)]
                    number += 1
                    answer = await client.post(path, body, media_type)
                    statuses[answer.status] += 1
            except (HttpError, EnclaveUnreachable):
                statuses[0] += 1
            finally:
                client.close()

    callers = [asyncio.create_task(caller(number)) for number in range(target.count(40, 8))]
    behind = []
    while time.monotonic() < end:
        behind.append(await member.behind_s())
        await asyncio.sleep(0.5)
    await asyncio.gather(*callers)
    tell(f"    {what}: answers {dict(sorted(statuses.items()))}, honest group {max(behind):.2f} s behind")
    expect(max(behind) <= MAX_BEHIND_S, f"an honest group is {max(behind):.1f} s behind")
    expect(not statuses[500], "a request ended in an internal error")


def _tessera_bodies(victim: bytes) -> list[tuple[str, bytes]]:
    """Return requests of the Tessera protocol, each as expensive as its limits permit."""
    ring = EnclaveKeyring([ENTROPY.token(32)])
    [sender] = ring.public_keys

    def payload(fields: Sequence[rlp.Encodable]) -> bytes:
        _, record = ring.seal(b64encode(rlp.encode(list(fields))), sender, [victim, sender], 2, bytes(32), bytes(80))
        found = payload_for(record, victim)
        assert found is not None
        return encode_payload(found, b"")

    large = payload([b"\1" * 700_000, *[b""] * 8, sender, [victim], b"restricted"])
    keys = [ENTROPY.token(32) for _ in range(4000)]
    info = PartyInfo(
        "http://127.0.0.1:9/", tuple((key, f"http://a{number}.example/") for number, key in enumerate(keys)), ()
    )
    group = encode_field(b"") * 2 + encode_fields(keys) + encode_field(bytes(20)) * 3
    return [
        ("/push", large),
        ("/push", payload([*[b""] * 9, sender, keys, b"restricted"])),
        ("/push", payload([*[b""] * 9, sender, [[]] * 60_000, b"restricted"])),
        ("/push", b"\xbf" + b"\x61a\x80" * 300_000),
        ("/push", b"\xa1\x61a" + b"\x81" * 1_000_000),
        ("/partyinfo", info.encode()),
        ("/partyinfo", PartyInfo("http://127.0.0.1:9/", (), ()).encode()),
        ("/partyinfo/validate", large[:4096]),
        ("/pushPrivacyGroup", group),
        ("/pushPrivacyGroup", encode_number(2**63) + bytes(3_000_000)),
    ]


async def tenants(target: Target) -> None:
    """Call every method as a tenant, for a group of another tenant and for a group that does not exist."""
    mine, other = ENCLAVE_KEYS[:2]
    foreign = legacy_id([mine])
    raw = sign_private_transaction(
        DEV_KEYS[0].secret(),
        nonce=int((await asked_as(target, mine, "priv_getTransactionCount", ACCOUNT, text(foreign)))["result"], 16),
        gas_price=0,
        gas_limit=1_000_000,
        to=None,
        data=NUMBER_CONTRACT,
        private_from=mine,
        private_for=[],
        chain_id=CHAIN_ID,
    )
    marker = (await asked_as(target, mine, "eea_sendRawTransaction", "0x" + raw.hex()))["result"]
    for _ in range(MAX_POLLS):
        if (await asked_as(target, mine, "priv_getTransactionReceipt", marker))["result"] is not None:
            break
        await asyncio.sleep(0.05)
    filter_id = (await asked_as(target, mine, "priv_newFilter", text(foreign), {}))["result"]
    seen = About(foreign, (mine,), marker, filter_id, "0x1")
    unseen = About(UNKNOWN, (b"\x09" * 32,), "0x" + "11" * 32, "0x77", "0x99")
    differing = []
    for name, params in REQUESTS.items():
        if name in ("priv_explain", "eea_sendRawTransaction", "priv_distributeRawTransaction"):
            continue  # unit tests cover priv_explain and the submission of signed transactions, so skip these methods
        answers = [await asked_as(target, other, name, *params(NO_SIGNER, about)) for about in (seen, unseen)]
        if answers[0] != answers[1]:
            differing.append(f"{name}: {answers}")
    tell(f"    {len(REQUESTS)} methods: {len(differing)} tell a foreign group from an unknown one")
    expect(not differing, "; ".join(differing[:3]))


async def asked_as(target: Target, key: bytes, name: str, *params: Any) -> dict[str, Any]:
    """Send a request as the tenant with this enclave key."""
    claims = {
        "permissions": ["*:*"],
        "username": "tenant",
        "exp": time.time() + 600,
        "privacyPublicKey": text(key),
    }
    bearer = b"Authorization: Bearer " + jwt.encode(claims, target.secret, "HS256").encode() + b"\r\n"
    status, body = await post(target.http, call(name, *params), bearer)
    expect(status == 200, f"{name}: status {status}")
    found: dict[str, Any] = json.loads(body)
    return found


ATTACKS = (gas, groups, payloads, tessera, envelopes)
