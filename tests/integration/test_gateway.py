"""Tests the gateway over real sockets, in front of a real node and of misbehaving services."""

from __future__ import annotations

import asyncio
import gzip
import json
import select
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPConnection, IncompleteRead
from pathlib import Path

import pytest
import websockets
from web3 import AsyncWeb3, Web3
from web3.providers.persistent import WebSocketProvider

from ophion.gateway import upstream as upstream_module
from ophion.runtime.memory_budget import MemoryBudget
from ophion.testing.node_process import NodeProcess
from ophion.testing.ports import free_ports
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from ophion.testing.wait_for import wait_for
from tests.integration.gateway_stage import Gateway, Upstream, call, request_of, site

FREE = ("--rpc-ws-port=0", "--graphql-http-port=0", "--page-http-port=0")
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    with NodeProcess(tmp_path_factory.mktemp("gateway") / "data", *FREE, command=("dev",)) as started:
        yield started


@pytest.fixture
def base(node: NodeProcess) -> str:
    return f"127.0.0.1:{node.ports['page-http']}"


# --- a real node ---------------------------------------------------------------------------------


def test_web3_works_through_it(node: NodeProcess, base: str) -> None:
    web3 = Web3(Web3.HTTPProvider(f"http://{base}/jsonrpc"))
    assert web3.eth.chain_id == 2018
    before = web3.eth.block_number
    sent = web3.eth.send_raw_transaction(legacy_transaction(DEV_KEYS[1], 0))
    assert web3.eth.wait_for_transaction_receipt(sent)["status"] == 1
    assert web3.eth.block_number == before + 1
    assert Web3(Web3.HTTPProvider(f"http://{base}/node/jsonrpc")).eth.block_number == before + 1


def test_subscriptions_work_through_it(node: NodeProcess, base: str) -> None:
    async def play() -> None:
        async with AsyncWeb3(WebSocketProvider(f"ws://{base}/jsonws")) as web3:
            await web3.eth.subscribe("newHeads")
            before = await web3.eth.block_number
            for nonce in range(3):
                await web3.eth.send_raw_transaction(legacy_transaction(DEV_KEYS[2], nonce))
            heads = web3.socket.process_subscriptions()
            numbers = [(await anext(heads))["result"]["number"] for _ in range(3)]
            assert numbers == [before + 1, before + 2, before + 3]

    asyncio.run(asyncio.wait_for(play(), 120))


def test_graphql_and_what_there_is(node: NodeProcess, base: str) -> None:
    host, port = base.split(":")
    connection = HTTPConnection(host, int(port), timeout=60)

    def ask(method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        connection.request(method, path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read()

    status, body = ask("POST", "/graphql", b'{"query":"{chainID}"}')
    assert (status, json.loads(body)) == (200, {"data": {"chainID": "0x7e2"}})
    status, body = ask("GET", "/nodes.json")
    listing = json.loads(body)
    assert [(one["name"], one["path"], one["up"]) for one in listing["nodes"]] == [("node", "node/", True)]
    assert (listing["services"], listing["token"]) == (["jsonrpc", "jsonws", "graphql"], False)
    status, body = ask("GET", "/node/metrics")
    assert (status, b"--metrics-enabled enables it" in body) == (404, True)
    status, body = ask("GET", "/")
    assert (status, b"Ophion" in body) == (200, True)
    status, body = ask("POST", "/jsonrpc/login", b"{}")
    assert status == 400, "tokens are not enabled, says the node"


def test_a_long_trace_is_passed_on_in_pieces(node: NodeProcess, base: str) -> None:
    # this contract jumps to its start until the gas is used up
    contract, loop = "0x" + "11" * 20, "0x5b600160010150600056"
    asked = [{"to": contract, "gas": "0x30d40"}, "latest", {"stateOverrides": {contract: {"code": loop}}}]
    direct = node.rpc("debug_traceCall", *asked)
    web3 = Web3(Web3.HTTPProvider(f"http://{base}/jsonrpc"))
    passed = web3.provider.make_request("debug_traceCall", asked)["result"]  # type: ignore[arg-type]
    assert len(json.dumps(direct)) > 1_000_000
    assert passed == direct


def test_answers_are_compressed_once(node: NodeProcess, base: str) -> None:
    connection = HTTPConnection(*base.split(":"), timeout=60)  # type: ignore[arg-type]
    for path, body in (("/jsonrpc", call("rpc.discover")), ("/", None)):
        for _ in range(3):
            wanted = {"Accept-Encoding": "gzip", "Content-Type": "application/json"}
            connection.request("GET" if body is None else "POST", path, body, wanted)
            answer = connection.getresponse()
            text = answer.read()
            if answer.headers["Content-Encoding"] == "gzip":
                text = gzip.decompress(text)
            assert text.startswith(b"<!doctype html>" if body is None else b'{"jsonrpc":"2.0"')
    connection.close()


def test_foreign_pages_and_foreign_names_are_refused(node: NodeProcess, base: str) -> None:
    def ask(**headers: str) -> int:
        connection = HTTPConnection(*base.split(":"), timeout=60)  # type: ignore[arg-type]
        connection.request("POST", "/jsonrpc", call("eth_chainId"), {"Content-Type": "application/json", **headers})
        return connection.getresponse().status

    assert ask(Origin=f"http://{base}") == 200
    assert ask(Origin="http://evil.example") == 403
    assert ask(Host="evil.example") == 403

    async def open_from(origin: str) -> int:
        try:
            async with websockets.connect(f"ws://{base}/jsonws", origin=origin):  # type: ignore[arg-type]
                return 101
        except websockets.InvalidStatus as error:
            return error.response.status_code

    assert asyncio.run(open_from(f"http://{base}")) == 101
    assert asyncio.run(open_from("http://evil.example")) == 403


@pytest.mark.parametrize(
    ("host", "hosts"), [("127.0.0.2", ()), ("::1", ()), ("::1", ("--host-allowlist=::1,127.0.0.1",))]
)
def test_a_page_reaches_its_node_wherever_it_listens(host: str, hosts: tuple[str, ...], tmp_path: Path) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, 0), family=family).close()
    except OSError:
        pytest.skip(f"this machine has no {host}")
    where = (f"--rpc-ws-host={host}", f"--graphql-http-host={host}", *hosts)
    with NodeProcess(tmp_path / "data", *FREE, *where, command=("dev",)) as node:
        connection = HTTPConnection("127.0.0.1", node.ports["page-http"], timeout=60)
        connection.request("POST", "/graphql", "{block{number}}")
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (200, b'{"data":{"block":{"number":0}}}')


def test_where_no_name_is_allowed_a_page_refuses_like_the_others(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", *FREE, "--host-allowlist=", command=("dev",)) as node:
        connection = HTTPConnection("127.0.0.1", node.ports["page-http"], timeout=60)
        connection.request("GET", "/nodes.json")
        assert connection.getresponse().status == 403


def test_a_taken_port_moves_the_page_and_not_the_node(node: NodeProcess, tmp_path: Path) -> None:
    taken = node.ports["page-http"]
    first = NodeProcess(tmp_path / "usual", *FREE[:2], command=("dev",))
    second = NodeProcess(tmp_path / "other", *FREE[:2], command=("dev",))
    with first as one, second as other:
        assert one.ports["page-http"] != other.ports["page-http"]
    refused = NodeProcess(tmp_path / "asked", *FREE[:2], f"--page-http-port={taken}", command=("dev",))
    with pytest.raises(AssertionError, match=f"Page service cannot listen on 127.0.0.1:{taken}"):
        refused.start()


# --- connections ---------------------------------------------------------------------------------


async def usual(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        await request_of(reader)
        writer.write(ANSWER)


def test_connections_are_kept_on_both_sides() -> None:
    with Upstream(usual) as node, Gateway(site(json_rpc=node.port)) as gateway:
        client = gateway.client()
        for size in (2, 2, 3, 2, 70_000, 2):
            client.request("POST", "/jsonrpc", b"x" * size, {"Content-Type": "application/json"})
            assert client.getresponse().read() == b"{}"
        client.close()
        assert gateway.ask("POST", "/jsonrpc", b"{}") == (200, b"{}")
        assert node.connections == 1


def test_a_newcomer_with_a_head_that_others_have_sent_is_served_like_them() -> None:
    """A new client that sends a cached request head takes the fast path to the same service. The whole head must be
    equal.
    """
    seen: list[tuple[bytes, bytes]] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            seen.append(await request_of(reader))
            writer.write(ANSWER)

    head = b"POST %b HTTP/1.1\r\nHost: %b\r\n%bContent-Length: 4\r\n\r\n"
    usual = head % (b"/jsonrpc", b"localhost", b"")
    with Upstream(talk) as behind, Gateway(site(json_rpc=behind.port, graphql=behind.port)) as gateway:

        def said(*pieces: bytes, least: int = 1) -> bytes:
            """Send these parts, close the connection, and return the answer."""
            found = b""
            with gateway.socket() as client:
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for number, piece in enumerate(pieces):
                    if number:
                        time.sleep(0.02)
                    client.sendall(piece)
                while len(found) < least:
                    found += client.recv(4096)
                return found

        for number in range(4):
            assert said(usual + b"[%02d]" % number) == ANSWER
        assert said(usual, b"[04]") == ANSWER
        assert said(usual + b"[0", b"5]") == ANSWER
        assert said(usual[:20], usual[20:] + b"[06]") == ANSWER
        assert said(usual + b"[07]" + usual + b"[08]", least=2 * len(ANSWER)) == 2 * ANSWER
        assert [body for _, body in seen] == [b"[%02d]" % number for number in range(9)]
        assert len({sent for sent, _ in seen}) == 1
        seen.clear()
        for name in (b"/graphql", b"/node/jsonrpc"):
            assert said(head % (name, b"localhost", b"") + b"[10]") == ANSWER
        assert [sent.split()[1] for sent, _ in seen] == [b"/graphql", b"/"]
        for _ in range(2):
            assert said(head % (b"/jsonrpc", b"evil.example", b"") + b"[11]").startswith(b"HTTP/1.1 403")
            assert said(head % (b"/jsonrpc", b"localhost", b"Origin: http://evil.example\r\n") + b"[12]") != ANSWER
        seen.clear()
        for token in (b"one", b"two", b"one"):
            assert said(head % (b"/jsonrpc", b"localhost", b"Authorization: Bearer %b\r\n" % token) + b"[13]") == ANSWER
        assert [b"Bearer one" in sent for sent, _ in seen] == [True, False, True]


def test_requests_of_many_clients_do_not_wait_for_each_other() -> None:
    async def slow_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            _, body = await request_of(reader)
            await asyncio.sleep(20 if body == b"slow" else 0)
            writer.write(ANSWER)

    with Upstream(slow_once) as node, Gateway(site(json_rpc=node.port)) as gateway:
        slow = gateway.client()
        slow.request("POST", "/jsonrpc", b"slow")
        assert gateway.ask("POST", "/jsonrpc", b"quick") == (200, b"{}")
        slow.close()


def test_pipelined_requests_are_answered_in_order() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            _, body = await request_of(reader)
            await asyncio.sleep(0.2 if body == b"a" else 0)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n" + body)

    with Upstream(echo) as node, Gateway(site(json_rpc=node.port)) as gateway, gateway.socket() as client:
        one = b"POST /jsonrpc HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n"
        client.sendall(one + b"a" + one + b"b" + one + b"c")
        found = b""
        while found.count(b"HTTP/1.1") < 3 or not found.endswith(b"c"):
            found += client.recv(4096)
        assert [part[-1:] for part in found.split(b"HTTP/1.1 200 OK")[1:]] == [b"a", b"b", b"c"]


def test_pipelined_requests_after_fast_path_requests_are_answered_in_order() -> None:
    async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            _, body = await request_of(reader)
            await asyncio.sleep(0.3 if body == b"a" else 0)
            writer.write(ANSWER.replace(b"{}", body * 2))

    one = b"POST /jsonrpc HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n"
    with Upstream(count) as node, Gateway(site(json_rpc=node.port)) as gateway, gateway.socket() as client:
        for _ in range(3):
            client.sendall(one + b"x")
            assert client.recv(4096).endswith(b"xx")
        client.sendall(one + b"a")
        time.sleep(0.1)  # wait, so that the gateway forwards this request on its fast path
        client.sendall(one + b"b" + one + b"c")
        found = b""
        while not found.endswith(b"cc"):
            found += client.recv(4096)
        assert [part[-2:] for part in found.split(b"HTTP/1.1 200 OK")[1:]] == [b"aa", b"bb", b"cc"]
        client.sendall(one + b"a")
        time.sleep(0.1)
        client.shutdown(socket.SHUT_WR)  # close only the sending direction: the client still waits for its answer
        assert client.recv(4096).endswith(b"aa")


@pytest.mark.parametrize(
    "said", [b"", b"nonsense", b"HTTP/1.1 418 T\r\nConnection: close\r\nContent-Length: 3\r\n\r\ntea"]
)
def test_a_slow_path_answer_after_fast_path_answers_is_forwarded(said: bytes) -> None:
    async def change(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(3):
            await request_of(reader)
            writer.write(ANSWER)
        await request_of(reader)
        writer.write(said)
        await writer.drain()

    with Upstream(change) as node, Gateway(site(json_rpc=node.port)) as gateway:
        client = gateway.client()
        for _ in range(3):
            client.request("POST", "/jsonrpc", b"{}")
            assert client.getresponse().read() == b"{}"
        client.request("POST", "/jsonrpc", b"{}")
        answer = client.getresponse()
        assert (answer.status, answer.read() == b"tea") == ((418, True) if said.endswith(b"tea") else (502, False))
        client.request("POST", "/jsonrpc", b"{}")
        assert client.getresponse().read() == b"{}", "the next one goes over a new connection"


def test_tokens_go_on_and_the_node_is_addressed_by_its_own_name() -> None:
    heads: list[bytes] = []

    async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            heads.append((await request_of(reader))[0])
            writer.write(ANSWER)

    with Upstream(note) as node, Gateway(site(json_rpc=node.port)) as gateway:
        for _ in range(2):
            gateway.ask(
                "POST", "/jsonrpc?a=1", b"{}", Authorization="Bearer abc", Origin=f"http://localhost:{gateway.port}"
            )
    for head in heads:
        assert head.startswith(b"POST /?a=1 HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n" % node.port)
        assert b"authorization: Bearer abc\r\n" in head
        assert b"origin" not in head.lower()


# --- nodes that are offline, full, or not nodes --------------------------------------------------


def test_a_node_that_is_down_is_named_in_the_language_of_its_clients() -> None:
    (away,) = free_ports(1)
    with Gateway(site(json_rpc=away, websocket=away, graphql=away)) as gateway:
        status, body = gateway.ask("POST", "/node/jsonrpc", call("eth_chainId"))
        assert status == 502
        assert json.loads(body)["error"]["message"] == (
            f"node is down: cannot connect to 127.0.0.1:{away} (connection refused)."
        )
        status, body = gateway.ask("POST", "/graphql", b"{}")
        assert (status, json.loads(body)["errors"][0]["message"][:12]) == (502, "node is down")
        status, body = gateway.ask("GET", "/nodes.json")
        assert (status, json.loads(body)["nodes"][0]["up"]) == (200, False)
        with pytest.raises(websockets.InvalidStatus) as refused:
            asyncio.run(websockets.connect(f"ws://127.0.0.1:{gateway.port}/jsonws").__aenter__())
        assert refused.value.response.status_code == 502
        assert b"node is down" in (refused.value.response.body or b"")


def test_however_many_look_nodes_are_asked_once() -> None:
    asked: list[bytes] = []

    async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            asked.append((await request_of(reader))[0])
            writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{"status":"UP"}')

    with Upstream(note) as node, Gateway(site(json_rpc=node.port)) as gateway:
        clients = [gateway.client() for _ in range(40)]
        for client in clients:
            client.request("GET", "/nodes.json")
        found = [json.loads(client.getresponse().read()) for client in clients]
        assert all(one["nodes"][0]["up"] for one in found)
        assert 1 <= len(asked) <= 5
        assert asked[0].startswith(b"GET /liveness HTTP/1.1\r\nHost: 127.0.0.1:")
        for client in clients:
            client.close()


@pytest.mark.parametrize(
    ("said", "status", "words"),
    [
        (b"", 502, b"has ended the connection instead of answering"),
        (b"nonsense\r\n\r\n", 502, b"answers, but not in HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort", 502, b"has ended the connection"),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n", 502, b"not in HTTP"),
        (b"HTTP/1.1 418 Teapot\r\nContent-Length: 3\r\nConnection: close\r\n\r\ntea", 418, b"tea"),
        (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", 200, b"until the end"),
    ],
)
def test_what_a_node_may_say(said: bytes, status: int, words: bytes) -> None:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        writer.write(said)
        await writer.drain()

    with Upstream(say) as node, Gateway(site(json_rpc=node.port)) as gateway:
        for _ in range(2):
            found = gateway.ask("POST", "/jsonrpc", b"{}")
            assert found[0] == status
            assert words in found[1]


def test_an_answer_that_breaks_off_late_is_not_taken_for_a_whole_one() -> None:
    async def half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 500_000)
        await writer.drain()

    lost = pytest.raises((IncompleteRead, ConnectionError))
    with Upstream(half) as node, Gateway(site(json_rpc=node.port)) as gateway, lost:
        gateway.ask("POST", "/jsonrpc", b"{}")


def test_too_many_requests_for_one_node_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstream_module, "MAX_UPSTREAM_CONNECTIONS", 1)
    monkeypatch.setattr(upstream_module, "MAX_WAITING", 1)
    gate = asyncio.Event()

    async def late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await request_of(reader)
            await gate.wait()
            writer.write(ANSWER)

    with Upstream(late) as node, Gateway(site(json_rpc=node.port)) as gateway:
        first, *others = (gateway.client() for _ in range(3))
        first.request("POST", "/jsonrpc", b"{}")
        wait_for(lambda: node.connections == 1)
        for client in others:
            client.request("POST", "/jsonrpc", b"{}")
        # one of the two requests waits and the other is refused, depending on which connection is accepted first
        [[sent_away], _, _] = select.select([client.sock for client in others], [], [], 60)
        others.sort(key=lambda client: client.sock is sent_away)
        refused = others[1].getresponse()
        assert (refused.status, refused.headers["Retry-After"]) == (503, "1")
        assert b"Too many requests wait for node" in refused.read()
        node.loop.call_soon_threadsafe(gate.set)
        assert [client.getresponse().read() for client in (first, others[0])] == [b"{}", b"{}"]
        assert node.connections == 1


def test_a_node_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstream_module, "ANSWER_S", 1.0)

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    with Upstream(silent) as node, Gateway(site(json_rpc=node.port)) as gateway:
        status, body = gateway.ask("POST", "/jsonrpc", b"{}")
        assert (status, b"has not answered" in body) == (504, True)


def test_who_goes_away_stops_the_work_behind() -> None:
    gone = asyncio.Event()

    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        try:
            await reader.read()
        finally:
            gone.set()

    with Upstream(wait) as node, Gateway(site(json_rpc=node.port)) as gateway:
        client = gateway.client()
        client.request("POST", "/jsonrpc", b"{}")
        time.sleep(0.2)
        client.sock.shutdown(socket.SHUT_RDWR)
        client.close()
        asyncio.run_coroutine_threadsafe(asyncio.wait_for(gone.wait(), 60), node.loop).result(70)


def test_who_breaks_off_while_nothing_is_read_stops_the_work_behind() -> None:
    left = 0

    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal left
        await request_of(reader)
        try:
            await reader.read()
        finally:
            left += 1

    with Upstream(wait) as node, Gateway(site(json_rpc=node.port)) as gateway:
        client = gateway.socket()
        client.sendall(b"POST /jsonrpc HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}" * 20)
        wait_for(lambda: node.connections == 8)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        deadline = time.monotonic() + 60
        while left < 8 and time.monotonic() < deadline:
            gateway.loop.call_soon_threadsafe(lambda: [one.tick(0.0) for one in gateway.service.places])
            time.sleep(0.05)
        assert left == node.connections == 8, "requests that were not begun are not begun for nobody"


# --- no other target can be reached --------------------------------------------------------------


@pytest.mark.parametrize(
    "head",
    [
        b"GET http://127.0.0.1:%d/secret HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET //127.0.0.1:%d/secret HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /grafana/ HTTP/1.1\r\nHost: localhost\r\nX: %d\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    ],
)
def test_no_request_decides_where_it_goes(head: bytes) -> None:
    with Upstream(usual) as secret, Upstream(usual) as node, Gateway(site(json_rpc=node.port)) as gateway:
        with gateway.socket() as client:
            client.sendall(head % secret.port)
            assert client.recv(4096).startswith(b"HTTP/1.1 ")
        assert secret.connections == 0


def test_who_gets_no_socket_cannot_talk_to_the_port_behind() -> None:
    said: list[bytes] = []

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        writer.write(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno")
        said.append(await reader.read(100))

    opening = (
        b"GET /jsonws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    )
    smuggled = b"POST /admin HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
    with Upstream(refuse) as node, Gateway(site(websocket=node.port)) as gateway, gateway.socket() as client:
        client.sendall(opening + smuggled)
        found = client.recv(4096)
        assert found.startswith(b"HTTP/1.1 401 ")
        client.sendall(smuggled)
        client.settimeout(0.5)
        with pytest.raises(TimeoutError):
            assert client.recv(4096) == b"never"
        wait_for(lambda: said)
    assert said == [b""]


# --- backpressure --------------------------------------------------------------------------------

MEGABYTE = 1024 * 1024


def test_an_answer_that_the_client_does_not_read_is_not_fetched() -> None:
    sent = 0

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await request_of(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (100 * MEGABYTE))
        for _ in range(100 * 16):
            writer.write(b"x" * (MEGABYTE // 16))
            await writer.drain()
            sent += MEGABYTE // 16

    with Upstream(flood) as node, Gateway(site(json_rpc=node.port)) as gateway:
        client = gateway.client()
        client.request("POST", "/jsonrpc", b"{}")
        answer = client.getresponse()
        before = -1
        while before != sent:
            before = sent
            time.sleep(0.5)
        assert sent < 16 * MEGABYTE, "what the systems of both sides keep, and little more"
        size = 0
        while piece := answer.read(MEGABYTE):
            size += len(piece)
        assert size == 100 * MEGABYTE


def test_long_unread_answers_are_counted() -> None:
    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (100 * MEGABYTE))
        while True:
            writer.write(b"x" * (MEGABYTE // 16))
            await writer.drain()

    with Upstream(flood) as node, Gateway(site(json_rpc=node.port), budget=MemoryBudget(MEGABYTE)) as gateway:
        clients = [gateway.client() for _ in range(8)]
        for client in clients:
            client.request("POST", "/jsonrpc", b"{}")
        deadline = time.monotonic() + 60
        while not gateway.shared.budget.cut_off and time.monotonic() < deadline:
            time.sleep(0.05)
        assert 0 < gateway.shared.budget.cut_off < 8, "some go, so that others can stay"
        for client in clients:
            client.close()


HANDSHAKE = (
    b"GET /jsonws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)


def opened(gateway: Gateway) -> socket.socket:
    """Open a WebSocket without a client library, so that only the test reads from the socket."""
    client = gateway.socket()
    client.sendall(HANDSHAKE)
    assert client.recv(13) == b"HTTP/1.1 101 "
    return client


def test_an_unread_socket_pauses_the_node_and_is_then_closed() -> None:
    sent = 0

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await request_of(reader)
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
        while True:
            writer.write(b"x" * (MEGABYTE // 16))
            await writer.drain()
            sent += MEGABYTE // 16

    with Upstream(flood) as node, Gateway(site(websocket=node.port), budget=MemoryBudget(20 * 1024)) as gateway:
        one = opened(gateway)
        wait_for(lambda: gateway.shared.budget.cut_off == 1, what="its end: it holds more than all of them may")
        assert sent < 16 * MEGABYTE
        one.close()
    with Upstream(flood) as node, Gateway(site(websocket=node.port)) as gateway:
        one = opened(gateway)
        size = 0
        while size < 64 * MEGABYTE:
            size += len(one.recv(MEGABYTE))
        one.close()


def test_a_node_that_does_not_read_holds_its_client_back() -> None:
    async def deaf(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
        reader._transport.pause_reading()  # type: ignore[attr-defined]
        await asyncio.sleep(60)

    with Upstream(deaf) as node, Gateway(site(websocket=node.port)) as gateway:
        client = opened(gateway)
        client.settimeout(0.5)
        sent = 0
        with suppress(TimeoutError):
            while sent < 64 * MEGABYTE:
                sent += client.send(b"x" * MEGABYTE)
        assert sent < 16 * MEGABYTE
        client.close()


def test_both_ends_of_a_socket_go_together() -> None:
    ended = asyncio.Event()

    async def open_it(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
        if await reader.read(10) == b"go":
            return
        ended.set()

    with Upstream(open_it) as node, Gateway(site(websocket=node.port)) as gateway:
        client = opened(gateway)
        client.recv(4096)
        client.sendall(b"go")
        assert client.recv(10) == b""
        other = opened(gateway)
        wait_for(lambda: len(gateway.service.places) == 1)
        other.close()
        asyncio.run_coroutine_threadsafe(asyncio.wait_for(ended.wait(), 60), node.loop).result(70)
        wait_for(lambda: len(gateway.service.places) == 0)


def test_many_simultaneous_upgrades_are_opened_a_few_at_a_time() -> None:
    waiting = 0
    go_on = asyncio.Event()

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal waiting
        await request_of(reader)
        waiting += 1
        await go_on.wait()
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
        await reader.read(10)

    with Upstream(slow) as node, Gateway(site(websocket=node.port)) as gateway:
        clients = [gateway.socket() for _ in range(100)]
        for client in clients:
            client.sendall(HANDSHAKE)
        wait_for(lambda: waiting >= 32)
        for gone in clients[20:30]:
            gone.close()
        assert gateway.ask("GET", "/")[0] == 200, "somebody with a usual request passes them"
        assert waiting <= 42
        node.loop.call_soon_threadsafe(go_on.set)
        for client in clients[:20] + clients[30:]:
            assert client.recv(13) == b"HTTP/1.1 101 "
            client.close()
