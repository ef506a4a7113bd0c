"""Members with Tessera move to the embedded enclave with the payloads that Tessera wrote.

Needs TESSERA=command (see test_tessera.py) and TESSERA_H2=path/to/h2.jar, which exports Tessera's database.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from ophion.enclave.keyfile import KeyPair, write_pair
from ophion.runtime.clock import SystemEntropy
from ophion.testing.network import TestNetwork
from ophion.testing.ports import free_ports
from ophion.testing.private_transactions import ENCLAVE_SECRETS, text
from ophion.testing.wait_for import wait_for
from tests.integration.command import ophion
from tests.interop.test_tessera import LIMIT_S, Story, Tessera
from tests.interop.test_tessera import pytestmark as needs_tessera

H2 = os.environ.get("TESSERA_H2", "")
pytestmark = [needs_tessera, pytest.mark.skipif(not H2, reason="TESSERA_H2 does not name the H2 library")]
_EXPORTS = {
    "payloads.csv": "SELECT RAWTOHEX(HASH), RAWTOHEX(ENCODED_PAYLOAD) FROM ENCRYPTED_TRANSACTION",
    "groups.csv": "SELECT RAWTOHEX(ID), RAWTOHEX(DATA) FROM PRIVACY_GROUP",
}


@pytest.fixture
def enclaves(tmp_path: Path) -> Iterator[list[Tessera]]:
    numbers = free_ports(6)
    ports = list(zip(numbers[::2], numbers[1::2], strict=True))
    made = [Tessera(tmp_path / f"tessera{index}", index, ports) for index in range(3)]
    try:
        for one in made:
            one.start()
        for one in made:
            wait_for(one.is_up, 3 * LIMIT_S, "Tessera")
        yield made
    finally:
        for one in made:
            one.kill()


def _export(enclave: Tessera) -> Path:
    target = enclave.path / "export"
    target.mkdir()
    for name, query in _EXPORTS.items():
        statement = f"CALL CSVWRITE('{target / name}', '{query}')"
        command = ["java", "-cp", H2, "org.h2.tools.Shell", "-url", f"jdbc:h2:{enclave.path / 'rows'}"]
        subprocess.run(
            [*command, "-user", "sa", "-password", "", "-sql", statement], check=True, capture_output=True, timeout=120
        )
    return target


def move_member(
    network: TestNetwork, enclave: Tessera, index: int, old: Sequence[str], options: Sequence[str] = ()
) -> None:
    """Move a member from Tessera to the embedded enclave: stop both, export, import, and start with other options."""
    node = network.nodes[index]
    node.kill()
    enclave.kill()
    key = enclave.path / "enclave.key"
    write_pair(key, KeyPair.of(ENCLAVE_SECRETS[index]), SystemEntropy())
    moved = ophion(
        "migrate",
        "private",
        f"--from-tessera={_export(enclave)}",
        f"--data-path={network.data_path(index)}",
        f"--privacy-enclave-key-file={key}",
        f"--genesis-file={network.genesis_file}",
    )
    print(moved.out, moved.err)
    node._arguments = [word for word in node._arguments if word not in old]
    node._arguments += [f"--privacy-enclave-key-file={key}", *options]
    node.start()


def test_three_members_move_to_the_embedded_enclave(enclaves: list[Tessera], tmp_path: Path) -> None:
    own = {
        index: (f"--privacy-url=http://127.0.0.1:{one.port}", f"--privacy-public-key-file={one.key_file}")
        for index, one in enumerate(enclaves)
    }
    network = TestNetwork(tmp_path, "qbft", validators=1, followers=2, options=("--privacy-enabled",), own=own)
    with network:
        story = Story(network, enclaves)
        markers = [story.set(value) for value in (47, 123, 5)]
        story.agree(markers[-1], 5)
        before = [
            [json.dumps(node.rpc("priv_getTransactionReceipt", marker), sort_keys=True) for marker in markers]
            for node in network.nodes
        ]
        for index, one in enumerate(enclaves):
            move_member(network, one, index, own[index])
        for index, node in enumerate(network.nodes):
            for at, marker in enumerate(markers):
                wait_for(
                    lambda node=node, marker=marker, at=at, index=index: (  # type: ignore[misc]
                        json.dumps(node.rpc("priv_getTransactionReceipt", marker), sort_keys=True) == before[index][at]
                    ),
                    LIMIT_S,
                    f"receipt {at} at node {index}",
                )
        assert [int(story.get(one), 16) for one in (story.a, story.b)] == [5, 5]
        # members that have moved to Ophion send each other new private transactions
        story.agree(story.set(9), 9)
        print(f"members: {[text(one.enclave_key)[:8] for one in story.clients]}")
