"""Runs Pantheon's own GraphQL cases on its chain."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.comparison import differences
from tests.conftest import shared_files
from tests.unit.graphql.client import Client, original_chain, parsed

MOCKED = "../shared/fixtures/README.md: mocked in the original's test bench"
DEVIATIONS = {
    "eth_estimateGas_contractDeploy": "graphql.md 5, call and estimateGas: the same estimator as eth_estimateGas",
    "eth_getBalance_invalidAccountBlockNumber": "graphql.md 10, decision 1: an absent account has zero values",
    "eth_getTransactionReceipt": "graphql.md 10, decision 4: createdContract returns the created account",
    "eth_sendRawTransaction_contractCreation": MOCKED,
    "eth_sendRawTransaction_messageCall": MOCKED,
    "eth_sendRawTransaction_transferEther": MOCKED,
    "eth_syncing": MOCKED,
    "graphql_pending": MOCKED,
}
"""Cases whose answers differ intentionally, with the line of the specification that decides."""

CASES = shared_files("fixtures/original/graphql")


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with original_chain(tmp_path_factory.mktemp("original")) as opened:
        yield opened


def compared(expected: dict[str, Any], got: dict[str, Any]) -> list[str]:
    """Compare errors by code and position. Texts may differ, except for the kinds that graphql.md 6 fixes."""
    found = differences(expected.get("data"), got.get("data"), at="$.data")
    if ("data" in expected) != ("data" in got):
        found.append("the member data is there in one answer alone")
    wanted, given = expected.get("errors", []), got.get("errors", [])
    if len(wanted) != len(given):
        return [*found, f"{len(given)} errors instead of {len(wanted)}: {given}"]
    for one, other in zip(wanted, given, strict=True):
        for member in ("message", "locations", "path", "extensions"):
            found += differences(one.get(member), other.get(member), at=f"$.errors.{member}")
    return found


@pytest.mark.skipif(not CASES, reason="public test data ../shared/fixtures/original/graphql is not here")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
@pytest.mark.parametrize("form", ["json", "text", "address"])
def test_case(client: Client, case: Path, form: str) -> None:
    content = json.loads(case.read_text())
    document = content["request"]
    if form == "json":
        status, got = client.post(document)
    elif form == "text" or "mutation" in document:
        status, got = parsed(client.respond(b"POST", body=document.encode()))
    else:
        status, got = client.get(query=document)
    found = compared(content["response"], got)
    if status != content["statusCode"]:
        found.append(f"status {status} instead of {content['statusCode']}")
    reason = DEVIATIONS.get(case.stem)
    if reason is None:
        assert found == []
    else:
        assert found, f"passes, though it is listed: {reason}"
