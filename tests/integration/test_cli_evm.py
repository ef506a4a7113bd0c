"""Runs the runners of public test vectors with the real command."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.conftest import DATA, shared_path
from tests.integration.command import ophion

VECTORS = DATA / "vectors"


@pytest.mark.parametrize(("kind", "cases"), [("state", 9), ("block", 4), ("transaction", 38)])
def test_the_vectors_of_a_folder_pass(kind: str, cases: int) -> None:
    done = ophion("evm", f"{kind}-test", VECTORS / kind).succeeded()
    assert done.out.splitlines()[-1] == f"{cases} passed, 0 failed, 0 skipped"


@pytest.mark.parametrize(
    ("kind", "folder"),
    [("state", "GeneralStateTests"), ("block", "BlockchainTests"), ("transaction", "TransactionTests")],
)
def test_the_whole_public_set_passes(kind: str, folder: str) -> None:
    path = shared_path("fixtures", "ethereum-tests", folder)
    done = ophion("evm", f"{kind}-test", path, timeout_s=600)
    assert done.code == 0, done.out[-3000:]
    assert re.fullmatch(r"[1-9]\d+ passed, 0 failed, 0 skipped", done.out.splitlines()[-1])


def test_a_failure_names_file_case_fork_and_both_values(tmp_path: Path) -> None:
    content = (VECTORS / "state" / "chainId.json").read_text()
    root = json.loads(content)["chainId"]["post"]["Cancun"][0]["hash"]
    wrong = tmp_path / "wrong.json"
    wrong.write_text(content.replace(root, "0x" + "11" * 32))
    done = ophion("evm", "state-test", wrong, VECTORS / "state")
    assert done.code == 1
    line, last = done.out.splitlines()
    assert line.startswith(f"FAILED {wrong} chainId Cancun")
    assert root[2:] in line
    assert "11" * 32 in line
    assert last == "9 passed, 1 failed, 0 skipped"


def test_a_fork_that_is_not_known_is_skipped_by_name(tmp_path: Path) -> None:
    (tmp_path / "later.json").write_text((VECTORS / "state" / "chainId.json").read_text().replace("Cancun", "Atlantis"))
    done = ophion("evm", "state-test", tmp_path).succeeded()
    assert "Atlantis" in done.out.splitlines()[0]
    assert done.out.splitlines()[-1] == "0 passed, 0 failed, 1 skipped"


@pytest.mark.parametrize("kind", ["state", "block", "transaction"])
@pytest.mark.parametrize("content", ["", "[]", "{", '{"a":1}', '{"a":{}}', "[" * 200_000])
def test_a_malformed_file_never_passes_and_is_no_disaster(tmp_path: Path, kind: str, content: str) -> None:
    (tmp_path / "bad.json").write_text(content)
    done = ophion("evm", f"{kind}-test", tmp_path)
    assert done.out.splitlines()[-1].startswith("0 passed, ")
    assert "Traceback" not in done.err
    assert "Internal error" not in done.err


def test_what_cannot_be_found_is_named(tmp_path: Path) -> None:
    ophion("evm", "state-test", tmp_path / "absent").failed("Could not find test file or folder:")
    ophion("evm", "state-test", tmp_path).failed("There is no JSON file in")
    ophion("evm", "block-test").failed("Missing required argument: PATH")
