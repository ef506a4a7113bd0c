"""A node that accepts clients by the fingerprints of their certificates, over HTTP and WebSocket."""

from __future__ import annotations

import hashlib
import http.client
import json
import ssl
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from ophion.testing.node_process import NodeProcess
from tests.unit.rpc.tls.test_certificates import identity, pem_file

REFUSED = (OSError, EOFError, http.client.HTTPException, WebSocketException)


def test_both_services_accept_listed_certificates_only(tmp_path: Path) -> None:
    store = pem_file(tmp_path / "node.pem", *identity("node"))
    key, certificate = identity("client")
    known = tmp_path / "known_clients"
    known.write_text(f"client {hashlib.sha256(certificate.public_bytes(Encoding.DER)).digest().hex(':').upper()}\n")
    listed, other = (
        pem_file(tmp_path / "listed.pem", key, certificate),
        pem_file(tmp_path / "other.pem", *identity("client")),
    )
    services = [
        option
        for service in ("rpc-http-tls", "rpc-ws-ssl")
        for option in (
            f"--{service}-enabled",
            f"--{service}-keystore-file={store}",
            f"--{service}-client-auth-enabled",
            f"--{service}-known-clients-file={known}",
        )
    ]
    command = ("--network=dev", "--rpc-ws-enabled", "--rpc-ws-port=0", *services)

    def context_of(file: Path | None, version: ssl.TLSVersion) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(store))
        context.minimum_version = context.maximum_version = version
        if file is not None:
            context.load_cert_chain(file)
        return context

    with NodeProcess(tmp_path / "data", *command) as node:

        def over_http(context: ssl.SSLContext) -> str:
            connection = http.client.HTTPSConnection("localhost", node.ports["json-rpc"], timeout=60, context=context)
            try:
                connection.request("POST", "/", '{"id":1,"method":"eth_chainId"}')
                return str(json.loads(connection.getresponse().read())["result"])
            finally:
                connection.close()

        def over_websocket(context: ssl.SSLContext) -> str:
            with connect(f"wss://localhost:{node.ports['ws-rpc']}", ssl=context) as socket:
                socket.send('{"id":1,"method":"eth_chainId"}')
                return str(json.loads(socket.recv())["result"])

        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            for ask in (over_http, over_websocket):
                assert ask(context_of(listed, version)).startswith("0x")
                for file in (other, None):
                    with pytest.raises(REFUSED):
                        ask(context_of(file, version))
        assert node.stop() == 0
