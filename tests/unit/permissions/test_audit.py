"""Tests audit records of changes."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ophion.chain.events import ChainBlock, Reorged
from ophion.permissions.audit import NAME, AuditLog
from ophion.permissions.contract_changes import ContractChanges
from ophion.permissions.contract_genesis import ACCOUNT_INGRESS, ACCOUNT_RULES
from ophion.permissions.options import PermissionConfig
from ophion.runtime.clock import ManualClock
from ophion.runtime.principal import SUBJECT
from ophion.runtime.thread_pools import InlineLane
from ophion.testing.node_core import DEV_CONFIG, TestCore, open_core
from ophion.testing.permissioned_network import calldata, permissioned_genesis
from ophion.testing.signing import DEV_KEYS, legacy_transaction

ADMIN, LISTED, OTHER = DEV_KEYS


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_changes_of_a_list_record_their_user(tmp_path: Path) -> None:
    file = tmp_path / "permissions_config.toml"
    file.write_text(f'accounts-whitelist=["0x{ADMIN.address.hex()}"]')
    config = replace(DEV_CONFIG, permissions=PermissionConfig(accounts_file_enabled=True))

    async def story(core: TestCore) -> None:
        permissions, lane = core.core.permissions, InlineLane("read")
        before = SUBJECT.set("ali")
        await permissions.change(lane, lambda: permissions.accounts.prepare([LISTED.address], ()))
        SUBJECT.reset(before)
        file.write_text("accounts-whitelist=[]")
        await permissions.change(lane, permissions.reloading)

    with open_core(tmp_path, config) as core:
        asyncio.run(story(core))
    first, second = records(tmp_path / NAME)
    assert first.pop("time").endswith("Z")
    assert first == {
        "rules": "accounts",
        "source": "file",
        "file": str(file),
        "by": "ali",
        "added": [f"0x{LISTED.address.hex()}"],
        "removed": [],
        "before": 1,
        "after": 2,
    }
    assert (second["by"], second["before"], second["after"], len(second["removed"])) == (None, 2, 0, 2)


def test_changes_by_transactions(tmp_path: Path) -> None:
    rules = PermissionConfig(accounts_contract_enabled=True, accounts_contract=ACCOUNT_INGRESS)

    def change(nonce: int, method: str) -> bytes:
        call = calldata(f"{method}(address)", OTHER.address)
        return legacy_transaction(ADMIN, nonce, to=ACCOUNT_RULES, data=call, gas=500_000)

    async def story(core: TestCore) -> list[bytes]:
        await core.mine(legacy_transaction(LISTED, 0))
        _, first = await core.mine(change(0, "addAccount"))
        # the account is already in the list, so this transaction changes nothing
        await core.mine(change(1, "addAccount"))
        _, second = await core.mine(change(2, "removeAccount"))
        return [*first, *second]

    genesis = permissioned_genesis([ADMIN.address], [LISTED.address])
    with open_core(tmp_path, replace(DEV_CONFIG, permissions=rules), genesis) as core:
        hashes = asyncio.run(story(core))
    found = records(tmp_path / NAME)
    assert [record["transaction"] for record in found] == ["0x" + hash.hex() for hash in hashes]
    assert [record["block"] for record in found] == [2, 4]
    assert {record["by"] for record in found} == {f"0x{ADMIN.address.hex()}"}
    account = f"0x{OTHER.address.hex()}"
    assert [(record["added"], record["removed"]) for record in found] == [([account], []), ([], [account])]
    assert [(record["before"], record["after"]) for record in found] == [(2, 3), (3, 2)]


def test_changes_that_a_reorganisation_undoes(tmp_path: Path) -> None:
    """A reorganisation replaces a block that contains a change by another block."""
    rules = PermissionConfig(accounts_contract_enabled=True, accounts_contract=ACCOUNT_INGRESS)
    call = calldata("addAccount(address)", OTHER.address)

    genesis = permissioned_genesis([ADMIN.address], [LISTED.address])
    with open_core(tmp_path, replace(DEV_CONFIG, permissions=rules), genesis) as core:
        audit = AuditLog(tmp_path / "other", ManualClock(), InlineLane("write"))
        changes = ContractChanges(core.chain, {"accounts": ACCOUNT_INGRESS})

        async def main() -> None:
            header, _ = await core.mine(legacy_transaction(ADMIN, 0, to=ACCOUNT_RULES, data=call, gas=500_000))
            body = core.chain.store.body(header.hash)
            assert body is not None
            block = ChainBlock(header, body)
            audit.follow_contracts(changes)(Reorged((block,), (block,)))

        asyncio.run(main())
    undone, done = records(tmp_path / "other")
    assert undone == done | {"undone": True}


def record(audit: AuditLog, *numbers: int) -> None:
    async def main() -> None:
        for number in numbers:
            audit.record(lambda number=number: [{"number": number}])  # type: ignore[misc]
        await audit.written()

    asyncio.run(main())


def test_size_is_bounded_by_turning_over(tmp_path: Path) -> None:
    record(AuditLog(tmp_path / "log", ManualClock(), InlineLane("write"), max_bytes=200, max_files=2), *range(50))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log", "log.1", "log.2"]
    assert all(path.stat().st_size <= 200 for path in tmp_path.iterdir())
    numbers = [record["number"] for name in ("log.2", "log.1", "log") for record in records(tmp_path / name)]
    assert numbers == list(range(numbers[0], 50))


def test_a_record_that_cannot_be_written_is_an_error_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        record(AuditLog(tmp_path / "none" / "log", ManualClock(), InlineLane("write")), 1)
    assert "not recorded in the audit log" in caplog.text
