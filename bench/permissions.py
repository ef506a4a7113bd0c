"""What rules cost: admission and building with 10,000 permitted senders in a file, or by a contract, against none.

Turns are taken between the three, and the best of each counts: the machine may do other things meanwhile.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from ophion.permissions.contract_genesis import ACCOUNT_INGRESS, NODE_INGRESS
from ophion.permissions.node_rules import Action
from ophion.permissions.options import PermissionConfig
from ophion.pool.options import PoolConfig
from ophion.primitives.enode import Enode
from ophion.testing.core import DEV_CONFIG, TestCore, open_core
from ophion.testing.permissioned import permissioned_genesis
from ophion.testing.signing import DEV_KEYS, legacy_transaction

COUNT = 3000
TURNS = 7
ADMIN, SENDER = DEV_KEYS[:2]
OWN = Enode(b"\1" * 64, "10.0.0.1", 30303, 30303)


async def send_and_build(core: TestCore, raws: list[bytes]) -> tuple[float, float]:
    start = time.process_time()
    await core.send(*raws)
    sent = time.process_time()
    header = await core.seal()
    built = time.process_time()
    body = core.chain.store.body(header.hash)
    assert body is not None
    assert body.transaction_count == COUNT
    return sent - start, built - sent


def main() -> None:
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else TURNS
    raws = [legacy_transaction(SENDER, nonce, value=nonce) for nonce in range(COUNT)]
    genesis = permissioned_genesis([ADMIN.address], [SENDER.address], [OWN])
    base = replace(DEV_CONFIG, pool=PoolConfig(max_size=2 * COUNT))
    with tempfile.TemporaryDirectory() as folder:
        rules = Path(folder) / "rules.toml"
        listed = [f'"0x{number:040x}"' for number in range(9_999)] + [f'"0x{SENDER.address.hex()}"']
        rules.write_text(f"accounts-whitelist=[{','.join(listed)}]")
        configs = {
            "none": PermissionConfig(),
            "file": PermissionConfig(accounts_file_enabled=True, accounts_file=rules),
            "contract": PermissionConfig(accounts_contract_enabled=True, accounts_contract=ACCOUNT_INGRESS),
        }
        best = {name: (float("inf"), float("inf")) for name in configs}
        for turn in range(turns):
            for name, permissions in configs.items():
                path = Path(folder) / f"{turn}-{name}"
                path.mkdir()
                with open_core(path, replace(base, permissions=permissions), genesis) as core:
                    admit, build = asyncio.run(send_and_build(core, raws))
                best[name] = (min(best[name][0], admit), min(best[name][1], build))
        for name, (admit, build) in best.items():
            rate = COUNT / (admit + build)
            share = rate * sum(best["none"]) / COUNT
            print(
                f"{name:9} admit {admit:.4f} s  build {build:.4f} s  {rate:7.0f} transactions/s of CPU  x {share:.2f}"
            )
        by_contract = PermissionConfig(nodes_contract_enabled=True, nodes_contract=NODE_INGRESS)
        path = Path(folder) / "nodes"
        path.mkdir()
        with open_core(path, replace(base, permissions=by_contract), genesis) as core:
            node_rules = core.core.permissions.node_rules
            node_rules.local = OWN
            strangers = [Enode(number.to_bytes(64, "big"), "10.1.0.1", 1, 1) for number in range(3000)]
            for what, crowd in (("each another", strangers), ("all the same", strangers[:1] * 3000)):
                start = time.process_time()
                for stranger in crowd:
                    node_rules.refusal_of(stranger, Action.ACCEPT)
                each = (time.process_time() - start) / len(crowd)
                print(f"1,000 strangers a second, {what}: {each * 1e5:.1f} % of a core")


if __name__ == "__main__":
    main()
