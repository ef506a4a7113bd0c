"""Workers answer reads beside the node: the same answers, never an older head, restarted when they end."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import jwt

from ophion.native.crypto import keccak256
from ophion.testing.network import CHAIN_ID, TestNetwork, member_key, network_genesis
from ophion.testing.node_process import NodeProcess, is_alive
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from ophion.testing.wait_for import wait_for
from tests.data.small_chain.make import GENESIS_FILE
from tests.fuzz.small_chain import import_small
from tests.integration.command import ophion
from tests.unit.rpc.tls.test_certificates import identity, pem_file

RICH = "0x" + DEV_KEYS[0].address.hex()


def children(pid: int) -> list[int]:
    """Return the worker processes of a node (Linux)."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            line = (entry / "cmdline").read_bytes()
        except (OSError, IndexError):
            continue
        if int(fields[1]) == pid and b"ophion.node.rpc_workers" in line and fields[0] not in "ZX":
            found.append(int(entry.name))
    return sorted(found)


class Client:
    """A connection to the JSON-RPC port, and the process that has accepted it."""

    def __init__(self, port: int, pids: list[int]) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self._connection.connect()
        self.post(b'{"jsonrpc":"2.0","id":0,"method":"net_version"}')
        self.pid = owner(port, self._connection.sock.getsockname()[1], pids)

    def post(self, body: bytes) -> bytes:
        self._connection.request("POST", "/", body, {"Content-Type": "application/json"})
        return self._connection.getresponse().read()

    def get(self, path: str) -> tuple[int, bytes]:
        self._connection.request("GET", path)
        response = self._connection.getresponse()
        return response.status, response.read()

    def call(self, method: str, *params: Any) -> Any:
        answer = json.loads(
            self.post(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode())
        )
        return answer.get("result", answer.get("error"))

    def close(self) -> None:
        self._connection.close()


def owner(port: int, client_port: int, pids: list[int]) -> int:
    """Return the process that serves a connection (Linux)."""
    wanted = f"0100007F:{port:04X}", f"0100007F:{client_port:04X}"
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if (fields[1], fields[2]) == wanted:
            link = f"socket:[{fields[9]}]"
            for pid in pids:
                for entry in Path(f"/proc/{pid}/fd").iterdir():
                    try:
                        if os.readlink(entry) == link:
                            return pid
                    except OSError:
                        continue
    raise AssertionError("no process has the connection")


@contextmanager
def clients(node: NodeProcess) -> Iterator[tuple[Client, Client]]:
    """Yield a client of the node process and one of a worker."""
    found: dict[bool, Client] = {}
    opened = []
    for _ in range(500):
        one = Client(node.ports["json-rpc"], [node.pid, *children(node.pid)])
        opened.append(one)
        found.setdefault(one.pid == node.pid, one)
        if len(found) == 2:
            break
    try:
        yield found[True], found[False]
    finally:
        for one in opened:
            one.close()


def qbft_genesis(path: Path, period_ms: int = 200) -> Path:
    """Write the genesis and the key of a network with one validator; return the genesis file."""
    key = member_key(0)
    options = {"blockperiodmilliseconds": period_ms}
    file = path / "genesis.json"
    file.write_text(json.dumps(network_genesis("qbft", [key.address], bft_options=options)))
    (path / "data").mkdir()
    (path / "data" / "key").write_text(key.secret().hex())
    return file


def wait_for_workers(node: NodeProcess, started: int = 1) -> list[int]:
    """Wait until workers were started this many times; return the processes that run."""
    wait_for(lambda: node.output().count("rpc worker started") >= started, 60, "the workers")
    return children(node.pid)


@contextmanager
def validator(path: Path, *options: str, workers: int = 1, period_ms: int = 200) -> Iterator[NodeProcess]:
    """Run a validator with workers."""
    genesis = qbft_genesis(path, period_ms)
    arguments = (f"--genesis-file={genesis}", "--min-gas-price=0", f"--rpc-workers={workers}", *options)
    with NodeProcess(path / "data", *arguments) as node:
        wait_for_workers(node, workers)
        yield node


def request(method: str, *params: Any, id: Any = 7) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode()


def reads(node: NodeProcess) -> list[bytes]:
    """Return requests that workers answer, for every block and transaction of the chain."""
    found = [request("eth_blockNumber"), request("eth_chainId"), request("net_version"), request("web3_clientVersion")]
    found += [request("web3_sha3", "0x68656c6c6f"), request("web3_sha3", "hello")]
    accounts, contracts = set(), set()
    for number in range(node.height + 2):
        at = hex(number)
        found += [request("eth_getBlockByNumber", at, number % 2 == 0), request("eth_getBlockReceipts", at)]
        found += [request("eth_getBlockTransactionCountByNumber", at), request("eth_getUncleCountByBlockNumber", at)]
        found += [request("debug_traceBlockByNumber", at, {"tracer": "callTracer"}), request("trace_block", at)]
        found += [request("eth_getTransactionByBlockNumberAndIndex", at, "0x0")]
        block = node.rpc("eth_getBlockByNumber", at, True)
        if block is None:
            continue
        found += [request("eth_getBlockByHash", block["hash"], True)]
        found += [request("eth_getLogs", {"blockHash": block["hash"]})]
        for transaction in block["transactions"]:
            hash = transaction["hash"]
            found += [request("eth_getTransactionByHash", hash), request("eth_getTransactionReceipt", hash)]
            found += [request("eth_getRawTransactionByHash", hash), request("debug_traceTransaction", hash)]
            found += [request("trace_transaction", hash), request("trace_replayTransaction", hash, ["trace"])]
            accounts |= {transaction["from"]} | ({transaction["to"]} if transaction["to"] else set())
            contracts |= {node.rpc("eth_getTransactionReceipt", hash)["contractAddress"]} - {None}
    found += [request("eth_getLogs", {"fromBlock": "0x0", "toBlock": "latest"})]
    for account in sorted(accounts | contracts):
        for block_tag in ("latest", "earliest", "0x5", {"blockNumber": "0x5"}, "safe", "nonsense"):
            found += [request("eth_getBalance", account, block_tag), request("eth_getCode", account, block_tag)]
            found += [request("eth_getTransactionCount", account, block_tag)]
        found += [
            request("eth_getStorageAt", account, "0x0", "latest"),
            request("eth_getProof", account, ["0x0"], "latest"),
        ]
        for call in ({"to": account}, {"to": account, "data": "0x" + "ab" * 3000}, {"to": account, "gasPrice": "0x1"}):
            found += [
                request("eth_call", call, "latest"),
                request("eth_call", call, "0x5"),
                request("eth_estimateGas", call),
            ]
        found += [request("eth_createAccessList", {"to": account}, "latest")]
        found += [
            request("trace_call", {"to": account}, ["trace"], "latest"),
            request("debug_traceCall", {"to": account}, "latest"),
        ]
    return found


UNKNOWN_HASH = "0x" + "77" * 32
FORWARDED = [
    request(method, *params)
    for method, params in (
        ("eth_gasPrice", []),
        ("eth_maxPriorityFeePerGas", []),
        ("eth_feeHistory", ["0x4", "latest", [50]]),
        ("eth_syncing", []),
        ("eth_accounts", []),
        ("eth_coinbase", []),
        ("eth_mining", []),
        ("eth_hashrate", []),
        ("eth_protocolVersion", []),
        ("eth_capabilities", []),
        ("eth_pendingTransactions", []),
        ("eth_getFilterChanges", ["0x1234"]),
        ("eth_getFilterLogs", ["0x1234"]),
        ("eth_uninstallFilter", ["0x1234"]),
        ("eth_getWork", []),
        ("eth_sendRawTransaction", ["0x"]),
        ("eth_sendRawTransaction", ["0x" + "c0" * 4000]),
        ("eth_sendTransaction", [{}]),
        ("eth_getTransactionReceipt", [UNKNOWN_HASH]),
        ("eth_getTransactionByHash", [UNKNOWN_HASH]),
        ("eth_getRawTransactionByHash", [UNKNOWN_HASH]),
        ("eth_getTransactionBySenderAndNonce", ["0x" + "11" * 20, "0x0"]),
        ("eth_getBalance", ["0x" + "11" * 20, "pending"]),
        ("eth_getTransactionCount", ["0x" + "11" * 20, "pending"]),
        ("eth_getCode", ["0x" + "11" * 20, "pending"]),
        ("eth_call", [{"to": "0x" + "11" * 20}, "pending"]),
        ("eth_call", [{"to": "0x" + "11" * 20, "data": "0x" + "ab" * 3000}, "pending"]),
        ("eth_getBlockTransactionCountByNumber", ["pending"]),
        ("eth_getTransactionByBlockNumberAndIndex", ["pending", "0x0"]),
        ("net_listening", []),
        ("net_peerCount", []),
        ("net_enode", []),
        ("net_services", []),
        ("rpc_modules", []),
        ("rpc.discover", []),
        ("admin_nodeInfo", []),
        ("admin_peers", []),
        ("txpool_status", []),
        ("txpool_content", []),
        ("txpool_besuStatistics", []),
        ("debug_getBadBlocks", []),
        ("debug_getRawHeader", ["latest"]),
        ("debug_storageRangeAt", ["latest", 0, "0x" + "11" * 20, "0x00", 2]),
        ("clique_getSigners", ["latest"]),
        ("clique_proposals", []),
        ("trace_rawTransaction", ["0x", ["trace"]]),
        ("miner_start", []),
        ("priv_getTransactionReceipt", [UNKNOWN_HASH]),
        ("perm_getAccountsWhitelist", []),
        ("sql_tables", []),
        ("no_such_method", []),
        ("eth_noSuchMethod", [1]),
        ("evm_mine", []),
    )
]
MESSAGES = [
    b"",
    b"{",
    b"[]",
    b"[1]",
    b'"text"',
    b'{"jsonrpc":"2.0","method":"eth_blockNumber"}',
    b'{"jsonrpc":"2.0","method":"admin_peers"}',
    b'{"jsonrpc":"2.0","id":1.5,"method":"admin_peers"}',
    b'{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"admin_peers","params":[]}',
    b'{"jsonrpc":"2.0","id":"\\u00e9\\n","method":"txpool_status","params":[]}',
    b'{"id":null,"method":"txpool_status","params":{}}',
    b'{"jsonrpc":"2.0","id":1,"method":5}',
    b"[%b]"
    % b",".join([*FORWARDED[:20], request("eth_blockNumber"), request("eth_getBalance", "0x" + "11" * 20, "latest")]),
    b"[%b]" % b",".join(request("eth_getBlockByNumber", hex(number), True, id=number) for number in range(30)),
    b"[%b]" % b",".join(request("txpool_status", id="x" * number) for number in range(200)),
]


def test_a_worker_gives_the_same_answers_as_its_node(tmp_path: Path) -> None:
    import_small(tmp_path / "data").succeeded()
    options = (f"--genesis-file={GENESIS_FILE}", "--rpc-workers=1", "--min-gas-price=0")
    groups = "--rpc-http-api=ETH,NET,WEB3,ADMIN,DEBUG,TRACE,TXPOOL,CLIQUE,MINER"
    with NodeProcess(tmp_path / "data", *options, groups) as node:
        wait_for_workers(node)
        asked = reads(node)
        assert len(asked) >= 100
        assert len(FORWARDED) >= 40
        with clients(node) as (at_node, at_worker):
            assert at_worker.pid in children(node.pid)
            for message in [*asked, *FORWARDED, *MESSAGES]:
                assert at_worker.post(message) == at_node.post(message), message[:300]
            for path in ("/", "/liveness", "/readiness", "/readiness?minPeers=0", "/nowhere"):
                assert at_worker.get(path) == at_node.get(path), path
            # filters live in the node, so each connection can poll them
            filter_id = at_worker.call("eth_newBlockFilter")
            assert at_node.call("eth_getFilterChanges", filter_id) == []
            assert at_worker.call("eth_uninstallFilter", filter_id) is True
            assert at_node.call("eth_uninstallFilter", filter_id) is False
        assert "Traceback" not in node.output()


def test_no_connection_sees_an_older_head_than_another_has_seen(tmp_path: Path) -> None:
    with validator(tmp_path, workers=2, period_ms=100) as node, ExitStack() as opened:
        port, pids = node.ports["json-rpc"], [node.pid, *children(node.pid)]
        found = [opened.enter_context(closing(Client(port, pids))) for _ in range(9)]
        assert {one.pid for one in found} == set(pids)
        seen = 0
        while seen < 30:
            for one in found:
                number = int(one.call("eth_blockNumber"), 16)
                block = one.call("eth_getBlockByNumber", "latest", False)
                assert seen <= number <= int(block["number"], 16)
                seen = int(block["number"], 16)
        for nonce in range(20):
            sender, *others = found[nonce % 9 :] + found[: nonce % 9]
            raw = legacy_transaction(DEV_KEYS[0], nonce, gas_price=0, chain_id=CHAIN_ID)
            hash = sender.call("eth_sendRawTransaction", "0x" + raw.hex())
            assert all(int(one.call("eth_getTransactionCount", RICH, "pending"), 16) == nonce + 1 for one in others)
            assert all(one.call("eth_getTransactionByHash", hash)["hash"] == hash for one in others)
            wait_for(lambda: others[nonce % 8].call("eth_getTransactionReceipt", hash), 60, "the receipt")  # noqa: B023
            for one in found:
                assert one.call("eth_getTransactionReceipt", hash)["status"] == "0x1"
                assert int(one.call("eth_getTransactionCount", RICH, "latest"), 16) == nonce + 1
                assert one.call("eth_getTransactionByHash", hash)["blockNumber"] is not None


def test_receipts_of_many_blocks_are_found_at_a_worker(tmp_path: Path) -> None:
    """The node writes rows of its transaction index late, and the worker has to know the rows that are missing."""
    with validator(tmp_path, period_ms=100) as node, clients(node) as (at_node, at_worker):
        hashes = []
        for nonce in range(150):
            raw = legacy_transaction(DEV_KEYS[0], nonce, gas_price=0, chain_id=CHAIN_ID)
            hashes.append(at_node.call("eth_sendRawTransaction", "0x" + raw.hex()))
            wait_for(lambda: at_worker.call("eth_getTransactionReceipt", hashes[-1]), 60, "the receipt")
        for hash in hashes:
            assert at_worker.post(request("eth_getTransactionByHash", hash)) == at_node.post(
                request("eth_getTransactionByHash", hash)
            )


def test_workers_follow_a_reorganisation(tmp_path: Path) -> None:
    """A signer that is cut off makes a block of its own, and leaves it when it meets the others."""
    with TestNetwork(tmp_path, "clique", validators=3, relayed=True, own={0: ["--rpc-workers=1"]}) as network:
        node = network.nodes[0]
        wait_for_workers(node)
        network.grow(3, 60)
        with clients(node) as (at_node, at_worker):
            network.divide([0], [1, 2])
            own, divided_at = [0], [time.monotonic()]

            def has_own_block() -> bool:
                if time.monotonic() > divided_at[0] + 10:  # the last common block is its own, so it signs no other one
                    network.heal()
                    network.grow(1, 60)
                    network.divide([0], [1, 2])
                    divided_at[0] = time.monotonic()
                heads = [one.rpc("eth_getBlockByNumber", "latest", False) for one in network.nodes]
                own[0] = int(heads[0]["number"], 16)
                other = network.nodes[1].rpc("eth_getBlockByNumber", hex(own[0]), False)
                return other is not None and other["hash"] != heads[0]["hash"]

            network.wait(has_own_block, 90, "two branches")
            left = at_worker.call("eth_getBlockByNumber", hex(own[0]), False)
            assert left == at_node.call("eth_getBlockByNumber", hex(own[0]), False)
            network.heal()
            network.wait(
                lambda: at_node.call("eth_getBlockByNumber", hex(own[0]), False) != left, 90, "the other branch"
            )
            for number in range(own[0] + 1):
                asked = request("eth_getBlockByNumber", hex(number), True)
                assert at_worker.post(asked) == at_node.post(asked)
            assert at_worker.call("eth_getBlockByHash", left["hash"], False)["hash"] == left["hash"]


def test_a_worker_that_dies_is_replaced_and_others_go_on(tmp_path: Path) -> None:
    with validator(tmp_path, workers=2) as node:
        before = children(node.pid)
        with clients(node) as (at_node, at_worker):
            os.kill(at_worker.pid, signal.SIGKILL)
            assert at_node.call("eth_chainId") == hex(CHAIN_ID)
            wait_for_workers(node, 3)
            after = children(node.pid)
            assert len(after) == 2
            assert len(set(before) & set(after)) == 1
        with clients(node) as (_, at_worker):
            assert at_worker.call("txpool_status") is not None
            os.kill(at_worker.pid, signal.SIGTERM)
            wait_for_workers(node, 4)
        assert "rpc worker ended, starting another" in node.output()
        assert node.stop() == 0
        assert not any(is_alive(pid) for pid in [*before, *after])


def test_workers_end_with_their_node(tmp_path: Path) -> None:
    with validator(tmp_path, workers=2) as node:
        workers, port = children(node.pid), node.ports["json-rpc"]
        node.kill()
        wait_for(lambda: not any(is_alive(pid) for pid in workers), 60, "the end of the workers")
        with socket.socket() as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.bind(("127.0.0.1", port))
        node.start()
        wait_for_workers(node, 4)
        with clients(node) as (at_node, at_worker):
            assert int(at_worker.call("eth_blockNumber"), 16) >= 0
            assert at_node.call("eth_chainId") == at_worker.call("eth_chainId")


def test_a_thousand_connections_are_shared_evenly(tmp_path: Path) -> None:
    with validator(tmp_path) as node, ExitStack() as opened:
        asked = request("eth_chainId")
        head = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(asked)
        found = []
        for _ in range(1000):
            one = opened.enter_context(socket.create_connection(("127.0.0.1", node.ports["json-rpc"])))
            one.sendall(head + asked)
            found.append(one)
        assert all(hex(CHAIN_ID).encode() in one.recv(4096) for one in found)
        sockets = sum(
            os.readlink(entry).startswith("socket:")
            for entry in Path(f"/proc/{children(node.pid)[0]}/fd").iterdir()
            if entry.is_symlink()
        )
        assert 400 < sockets < 600


def test_metrics_count_the_requests_of_all_processes(tmp_path: Path) -> None:
    options = ("--metrics-enabled", "--metrics-port=0", "--rpc-http-api=ETH,DEBUG")
    with validator(tmp_path, *options) as node, clients(node) as (at_node, at_worker):
        for one in (at_node, at_worker):
            for _ in range(10):
                one.call("eth_getBalance", RICH, "latest")
                one.call("eth_gasPrice")
                one.call("eth_getTransactionReceipt", UNKNOWN_HASH)
                one.call("eth_getCode", "nonsense", "latest")

        def counted() -> bool:
            metrics = at_node.call("debug_metrics")["rpc"]
            times, errors = metrics["request_time"], metrics["errors_total"]
            assert not set(errors) - {"eth_getCode", "net_version"}
            counts = [times[name]["count"] for name in ("eth_getBalance", "eth_gasPrice", "eth_getTransactionReceipt")]
            assert max(counts) <= 20
            return counts == [20, 20, 20] and errors["eth_getCode"]["-32602"] == 20

        wait_for(counted, 60, "the counts of the worker")
        assert at_node.call("debug_metrics")["rpc"]["active_connections"]["jsonrpc"] >= 2


def test_tokens_and_tls_are_checked_by_workers(tmp_path: Path) -> None:
    store, secret = pem_file(tmp_path / "node.pem", *identity("node")), tmp_path / "secret"
    secret.write_text("s" * 40)
    options = (
        "--rpc-http-tls-enabled",
        f"--rpc-http-tls-keystore-file={store}",
        "--rpc-http-authentication-enabled",
        f"--rpc-http-authentication-jwt-public-key-file={secret}",
        "--rpc-http-authentication-jwt-algorithm=HS256",
        "--rpc-http-api=ETH,TXPOOL",
    )
    expiry = int(time.time()) + 600
    tokens = [
        jwt.encode({"permissions": permissions, "username": "ali", "exp": expiry}, "s" * 40, "HS256")
        for permissions in (["eth:*"], ["*:*"])
    ]
    with validator(tmp_path, *options) as node, ExitStack() as opened:
        port, context = node.ports["json-rpc"], ssl.create_default_context(cafile=str(store))
        seen = {}
        for _ in range(2):
            connection = http.client.HTTPSConnection("localhost", port, timeout=60, context=context)
            opened.enter_context(closing(connection))
            connection.connect()
            answers = []
            for token in (None, "wrong", *tokens):
                headers = {} if token is None else {"Authorization": f"Bearer {token}"}
                for method in ("eth_chainId", "eth_gasPrice", "txpool_status", "nothing"):
                    connection.request("POST", "/", request(method), headers)
                    response = connection.getresponse()
                    answers.append((response.status, response.read()))
            client_port = connection.sock.getsockname()[1]
            seen[owner(port, client_port, [node.pid, *children(node.pid)])] = answers
        assert len(seen) == 2
        at_node, at_worker = seen.values()
        assert at_node == at_worker
        assert [status for status, _ in at_node] == [401] * 8 + [200, 200, 401, 200] + [200] * 4


def test_the_file_does_not_grow_for_workers_that_read_and_are_killed(tmp_path: Path) -> None:
    """Workers with and without requests, pruning, backups: pages that the chain has freed are used again."""
    sizes = {}
    for workers in (0, 2):
        path = tmp_path / str(workers)
        path.mkdir()
        genesis = qbft_genesis(path, period_ms=100)
        options = (f"--genesis-file={genesis}", "--min-gas-price=0", "--state-history=16", f"--rpc-workers={workers}")
        with NodeProcess(path / "data", *options) as node, ExitStack() as opened:
            wait_for_workers(node, workers)
            found: list[Client] = []
            if workers:
                pids = [node.pid, *children(node.pid)]
                every = [opened.enter_context(closing(Client(node.ports["json-rpc"], pids))) for _ in range(6)]
                found = [one for one in every if one.pid != node.pid]
                assert len({one.pid for one in found}) == 2
                at_node = next(one for one in every if one.pid == node.pid)
            else:
                at_node = opened.enter_context(closing(Client(node.ports["json-rpc"], [node.pid])))
            for nonce in range(0, 800, 20):
                for number in range(nonce, nonce + 20):
                    to = keccak256(number.to_bytes(4, "big"))[:20]
                    raw = legacy_transaction(DEV_KEYS[0], number, to=to, value=1, gas_price=0, chain_id=CHAIN_ID)
                    at_node.call("eth_sendRawTransaction", "0x" + raw.hex())
                height = int(at_node.call("eth_blockNumber"), 16)
                wait_for(lambda: int(at_node.call("eth_blockNumber"), 16) > height + 1, 60, "a block")  # noqa: B023
                if nonce == 400 and workers:
                    os.kill(found[0].pid, signal.SIGKILL)
                    found = [one for one in found if one.pid != found[0].pid]
                    ophion("storage", "backup", f"--data-path={path / 'data'}", f"--to={path / 'backup'}").succeeded()
                # the second half of the clients is idle after its first request
                for one in found[: len(found) // 2] if nonce else found:
                    assert int(one.call("eth_getBalance", "0x" + to.hex(), "latest"), 16) >= 0
            assert node.stop() == 0
        ophion("storage", "check", f"--data-path={path / 'data'}").succeeded()
        sizes[workers] = (path / "data" / "database" / "data.mdb").stat().st_size
    assert sizes[2] < 1.5 * sizes[0]


def test_wrong_uses_are_refused_in_one_sentence(tmp_path: Path) -> None:
    http, data = "--rpc-http-enabled", f"--data-path={tmp_path}"
    for count in ("-1", "1000", "many"):
        ophion(http, data, f"--genesis-file={GENESIS_FILE}", f"--rpc-workers={count}").failed("--rpc-workers")
    ophion("dev", data, "--rpc-workers=1").failed("--rpc-workers cannot be used with --network=dev")
    ophion(http, data, "--network=dev", "--rpc-workers=1").failed("--rpc-workers cannot be used with --network=dev")
    credentials = tmp_path / "users.toml"
    credentials.write_text("[Users.one]\npassword = ''\npermissions = []\n")
    login = ("--rpc-http-authentication-enabled", f"--rpc-http-authentication-credentials-file={credentials}")
    ophion(http, data, f"--genesis-file={GENESIS_FILE}", "--rpc-workers=1", *login).failed(
        "--rpc-workers cannot be used with logins at this node"
    )
