"""Measure what permission rules cost: 10,000 permitted senders in a file, a contract, or no rules.

    python bench/permissions.py [TURNS]         only pool and block building, in this process; floods of unknown nodes
    python bench/permissions.py --node [TURNS]  a validator as a process, transfers as single requests over HTTP

`bench/inbound_flood.py` measures whole connection attempts, not only the rule.

The variants alternate, and the best round of each counts, because the machine may have other load. Each round has
new transactions, so that the cost of admission includes their signatures.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import tempfile
import time
from itertools import count
from pathlib import Path

from msgspec import structs
from msgspec.structs import replace

from ophion.chainspec.genesis import Genesis, GenesisAccount
from ophion.native.crypto import PrivateKey
from ophion.node.config import NodeConfig
from ophion.permissions.contract_genesis import ACCOUNT_INGRESS, NODE_INGRESS, account_contracts
from ophion.permissions.node_rules import Action
from ophion.permissions.options import PermissionConfig
from ophion.pool.options import PoolConfig
from ophion.primitives.enode import Enode
from ophion.testing.network import CHAIN_ID, network_genesis
from ophion.testing.node_core import DEV_CONFIG, TestCore, open_core
from ophion.testing.node_process import NodeProcess
from ophion.testing.permissioned_network import permissioned_genesis
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


def admit_many(folder: Path, base: NodeConfig, genesis: Genesis, turns: int) -> None:
    """Measure the processor time to admit one transaction of each of many senders. All senders are new to the rules."""
    keys = [PrivateKey(number.to_bytes(32, "big")) for number in range(1, COUNT + 1)]
    new = count(1)
    accounts = tuple(GenesisAccount(key.address, 0, 10**21, b"", ()) for key in keys)
    genesis = structs.replace(genesis, accounts=genesis.accounts + accounts)
    rules = folder / "accounts.toml"
    addresses = [f"{number:040x}" for number in range(10_000 - COUNT)] + [key.address.hex() for key in keys]
    rules.write_text(f"accounts-whitelist={json.dumps([f'0x{address}' for address in addresses])}")
    configs = {"none": PermissionConfig(), "file": PermissionConfig(accounts_file_enabled=True, accounts_file=rules)}
    best = dict.fromkeys(configs, float("inf"))
    for turn in range(turns):
        for name, permissions in configs.items():
            path = folder / f"accounts-{turn}-{name}"
            path.mkdir()
            raws = [legacy_transaction(key, 0, value=next(new)) for key in keys]
            with open_core(path, replace(base, permissions=permissions), genesis) as core:
                start = time.process_time()
                asyncio.run(core.send(*raws))
                best[name] = min(best[name], time.process_time() - start)
                assert len(core.core.pool) == COUNT
    for name, admit in best.items():
        print(f"{COUNT} senders, one transaction each, {name:4}  admit {admit:.4f} s  x {admit / best['none']:.3f}")


def flood(port: int, raws: list[bytes]) -> None:
    """Send transactions as single requests, 32 at a time."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        for at in range(0, len(raws), 32):
            some = raws[at : at + 32]
            text = b""
            for raw in some:
                body = (
                    b'{"jsonrpc":"2.0","id":1,"method":"eth_sendRawTransaction","params":["0x%b"]}' % raw.hex().encode()
                )
                text += b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
            connection.sendall(text)
            answers = b""
            while answers.count(b'"jsonrpc"') < len(some) or not answers.endswith(b"}"):
                answers += connection.recv(65536)
            assert b'"error"' not in answers, answers


def with_nodes(turns: int) -> None:
    """Measure one QBFT validator: transactions per second until all are mined, and processor time per transaction."""
    key = PrivateKey(b"\1" * 32)
    raws = [legacy_transaction(SENDER, nonce, value=0, gas_price=0, chain_id=CHAIN_ID) for nonce in range(COUNT)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        genesis = network_genesis("qbft", [key.address])
        contracts = account_contracts([ADMIN.address], [SENDER.address])
        genesis["alloc"] |= {address.hex(): account for address, account in contracts.items()}
        (path / "genesis.json").write_text(json.dumps(genesis))
        (path / "key").write_text(key.secret().hex())
        listed = [f'"0x{number:040x}"' for number in range(9_999)] + [f'"0x{SENDER.address.hex()}"']
        (path / "rules.toml").write_text(f"accounts-whitelist=[{','.join(listed)}]")
        flag = "--permissions-accounts"
        kinds = {
            "none": (),
            "file": (f"{flag}-config-file-enabled", f"{flag}-config-file={path}/rules.toml"),
            "contract": (f"{flag}-contract-enabled", f"{flag}-contract-address=0x{ACCOUNT_INGRESS.hex()}"),
        }
        kinds["admission"] = (*kinds["contract"], f"{flag}-contract-at-admission")
        best = {name: (0.0, float("inf")) for name in kinds}
        for turn in range(turns):
            for name, options in kinds.items():
                common = (f"--genesis-file={path}/genesis.json", f"--node-private-key-file={path}/key")
                data = path / f"{turn}-{name}"
                with NodeProcess(data, *common, "--min-gas-price=0", "--tx-pool-max-size=10000", *options) as node:
                    time.sleep(1.5)  # wait, so that the measured time does not include the start of the node
                    before, start = processor_s(node.pid), time.monotonic()
                    flood(node.ports["json-rpc"], raws)
                    while int(node.rpc("eth_getTransactionCount", f"0x{SENDER.address.hex()}", "latest"), 16) < COUNT:
                        time.sleep(0.01)
                    rate = COUNT / (time.monotonic() - start)
                    each = (processor_s(node.pid) - before) / COUNT * 1e6
                best[name] = (max(best[name][0], rate), min(best[name][1], each))
        for name, (rate, each) in best.items():
            share = best["none"][1] / each
            print(f"{name:9} {rate:6.0f} transactions/s  {each:5.0f} microseconds of processor time  x {share:.2f}")


def processor_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    arguments = sys.argv[1:]
    is_node = "--node" in arguments
    numbers = [int(one) for one in arguments if one != "--node"]
    if is_node:
        with_nodes(numbers[0] if numbers else 3)
        return
    turns = numbers[0] if numbers else TURNS
    new = count(1)
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
                raws = [legacy_transaction(SENDER, nonce, value=next(new)) for nonce in range(COUNT)]
                with open_core(path, replace(base, permissions=permissions), genesis) as core:
                    admit, build = asyncio.run(send_and_build(core, raws))
                best[name] = (min(best[name][0], admit), min(best[name][1], build))
        for name, (admit, build) in best.items():
            rate = COUNT / (admit + build)
            share = rate * sum(best["none"]) / COUNT
            print(
                f"{name:9} admit {admit:.4f} s  build {build:.4f} s  {rate:7.0f} transactions/s of CPU  x {share:.2f}"
            )
        admit_many(Path(folder), base, genesis, turns)
        by_contract = PermissionConfig(nodes_contract_enabled=True, nodes_contract=NODE_INGRESS)
        path = Path(folder) / "nodes"
        path.mkdir()
        with open_core(path, replace(base, permissions=by_contract), genesis) as core:
            node_rules = core.core.permissions.node_rules
            node_rules.local = OWN
            unknown = [Enode(number.to_bytes(64, "big"), "10.1.0.1", 1, 1) for number in range(3000)]
            for what, nodes in (("each another", unknown), ("all the same", unknown[:1] * 3000)):
                start = time.process_time()
                for node in nodes:
                    node_rules.refusal_of(node, Action.ACCEPT)
                each = (time.process_time() - start) / len(nodes)
                print(f"1,000 unknown nodes a second, {what}: {each * 1e5:.1f} % of a core")


if __name__ == "__main__":
    main()
