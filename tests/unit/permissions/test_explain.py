"""Tests decisions of rules, and the block since which a decision applies. The tests of perm_explain cover the same
code.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from msgspec.structs import replace

from ophion.permissions.contract_genesis import ACCOUNT_INGRESS
from ophion.permissions.explain import TransactionFields, explain_sending
from ophion.permissions.options import PermissionConfig
from ophion.testing.node_core import DEV_CONFIG, TestCore, open_core
from ophion.testing.permissioned_network import permissioned_genesis
from ophion.testing.signing import DEV_KEYS

ADMIN, OTHER = DEV_KEYS[0], DEV_KEYS[2]


def test_an_answer_older_than_the_search_range_has_no_first_block(tmp_path: Path) -> None:
    rules = PermissionConfig(accounts_contract_enabled=True, accounts_contract=ACCOUNT_INGRESS)

    async def grow(core: TestCore) -> None:
        for _ in range(260):
            await core.seal()

    genesis = permissioned_genesis([ADMIN.address], [])
    with open_core(tmp_path, replace(DEV_CONFIG, permissions=rules), genesis) as core:
        permissions, chain = core.core.permissions, core.chain
        [answer] = explain_sending(permissions, chain, chain.head, TransactionFields(OTHER.address))
        assert (answer.is_allowed, answer.since) == (False, 0)
        asyncio.run(grow(core))
        [answer] = explain_sending(permissions, chain, chain.head, TransactionFields(OTHER.address))
        assert (answer.is_allowed, answer.since) == (False, None)
