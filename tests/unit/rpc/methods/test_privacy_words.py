"""Tests the errors of privacy.md 11. A remote enclave returns each error over HTTP, and the tests check the error that
the client gets.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ophion.enclave.group_ids import legacy_id
from ophion.runtime.principal import TENANT
from ophion.testing.ports import free_ports
from ophion.testing.private_transactions import text
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.unit.rpc.private_interface import FOR, FROM, PRIVACY, PrivateInterface, open_private

WORDS = [
    "NodeMissingPeerUrl",
    "NodePushingToPeer",
    "NodePropagatingToAllPeers",
    "NoSenderKey",
    "InvalidPayload",
    "EnclaveCreateKeyPair",
    "EnclaveDecodePublicKey",
    "EnclaveDecryptWrongPrivateKey",
    "EnclaveEncryptCombineKeys",
    "EnclaveMissingPrivateKeyPasswords",
    "EnclaveNoMatchingPrivateKey",
    "EnclaveNotPayloadOwner",
    "EnclaveUnsupportedPrivateKeyType",
    "EnclaveStorageDecrypt",
    "EnclavePrivacyGroupIdCreation",
    "EnclavePayloadNotFound",
    "CreatePrivacyGroupShouldIncludeSelf",
    "PrivacyGroupNotStored",
    "PrivacyGroupNotDeleted",
    "PrivacyGroupNotPushed",
    "PrivacyGroupNotFound",
    "PrivacyGroupQueryError",
    "MethodUnimplemented",
    "EnclaveKeysCannotDecryptPayload",
]
"""The complete list of errors in privacy.md 11."""
SENDER = "0x" + DEV_KEYS[0].address.hex()


class Refusing:
    """An enclave that gives the same answer to all requests."""

    def __init__(self) -> None:
        self.answer: tuple[int, bytes] = (500, b"")

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await _head(reader):
            sizes = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
            await reader.readexactly(int(sizes[0].partition(b":")[2]))
            status, body = self.answer
            writer.write(b"HTTP/1.1 %d Said\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body))
        writer.close()


async def _head(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return b""


class Asked:
    """A node with a remote enclave that gives the same answer to all requests."""

    def __init__(self, private: PrivateInterface, enclave: Refusing) -> None:
        self.private = private
        self.enclave = enclave

    def error(self, status: int, body: bytes, name: str, *params: Any) -> tuple[int, str]:
        """Return the error of a method when the enclave answers with this status and body."""
        self.enclave.answer = (status, body)
        return self.private.error(name, *params)


@pytest.fixture(params=[False])
def asked(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Asked]:
    (port,) = free_ports(1)
    enclave = Refusing()
    with open_private(tmp_path, replace(PRIVACY, multi_tenancy=request.param), outside=port) as private:
        server = private.run(asyncio.start_server(enclave.serve, "127.0.0.1", port))
        yield Asked(private, enclave)
        server.close()


def told(word: str) -> bytes:
    return json.dumps({"error": word}).encode()


def test_every_word_of_an_enclave_is_passed_on(asked: Asked) -> None:
    members = [text(FROM), text(FOR)]
    for word in WORDS:
        expected = (-50200, word)
        assert asked.error(500, told(word), "eea_sendRawTransaction", asked.private.signed()) == expected
        assert asked.error(500, told(word), "priv_distributeRawTransaction", asked.private.signed()) == expected
        assert asked.error(500, told(word), "priv_createPrivacyGroup", members) == expected
        assert asked.error(500, told(word), "priv_findPrivacyGroup", members) == expected


def test_the_sentences_of_tessera_are_passed_on_without_keys(asked: Asked) -> None:
    key = text(FOR)
    recipient = f"Recipient not found for key: {key}".encode()
    expected = (-50200, "Recipient not found for key:")
    assert asked.error(404, recipient, "eea_sendRawTransaction", asked.private.signed()) == expected
    oneself = b"The list of members in a privacy group should include self"
    assert asked.error(400, oneself, "priv_createPrivacyGroup", [key]) == (-50200, oneself.decode())


@pytest.mark.parametrize("body", [b"", told("SomethingElse"), b"<html>", b'{"error":7}'])
def test_whatever_else_goes_wrong_there(asked: Asked, body: bytes) -> None:
    trouble = (-50100, "Error communicating with enclave")
    assert asked.error(500, body, "eea_sendRawTransaction", asked.private.signed()) == trouble
    members, group = [text(FROM), text(FOR)], text(legacy_id([FROM, FOR]))
    assert asked.error(500, body, "priv_createPrivacyGroup", members) == (-50100, "Error creating privacy group")
    assert asked.error(500, body, "priv_deletePrivacyGroup", group) == (-50100, "Error deleting privacy group")
    assert asked.error(500, body, "priv_findPrivacyGroup", members) == (-50100, "Error finding privacy group")


@pytest.mark.parametrize("asked", [True], indirect=True)
def test_unable_to_determine_nonce_for_account_in_group(asked: Asked) -> None:
    """If the enclave fails while the node checks the access of a tenant, the client gets the error of the enclave."""
    TENANT.set(text(FROM))
    unable = (-50100, "Unable to determine nonce for account in group.")
    group = text(legacy_id([FROM, FOR]))
    assert asked.error(500, b"", "priv_getTransactionCount", SENDER, group) == unable
    for name in ("eea_getTransactionCount", "priv_getEeaTransactionCount"):
        assert asked.error(500, b"", name, SENDER, text(FROM), [text(FOR)]) == unable


def test_payload_not_found_means_not_a_participant(asked: Asked) -> None:
    asked.enclave.answer = (404, told("EnclavePayloadNotFound"))
    private = asked.private
    raw = legacy_transaction(
        DEV_KEYS[2], 0, to=(126).to_bytes(20, "big"), data=b"\x11" * 32, gas=100_000, gas_price=10**9
    )
    marker = private.ask("eth_sendRawTransaction", "0x" + raw.hex())
    private.seal()
    for name in ("eea_getTransactionReceipt", "priv_getTransactionReceipt", "priv_getPrivateTransaction"):
        assert private.ask(name, marker) is None
