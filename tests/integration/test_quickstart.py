"""Tests `ophion quickstart` with real processes: start, use by clients, and removal without leftovers.

`OPHION_QUICKSTART=long` repeats the start twenty times and subscribes to heads for ten minutes.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import websockets
from web3 import Web3
from web3.middleware import ExtraDataToPOAMiddleware

from ophion.native.crypto import PrivateKey
from ophion.quickstart.lock_file import RunningNetwork, holder
from ophion.quickstart.plan import PROXY
from ophion.testing.node_process import COMMAND, is_alive
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from ophion.testing.wait_for import wait_for
from tests.conftest import ROOT
from tests.integration.command import environment

IS_LONG = os.environ.get("OPHION_QUICKSTART") == "long"
LIMIT_S = 60.0


def quickstart(path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, "quickstart", *words, f"--directory={path}"]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=120)


def succeeded(path: Path, *words: str) -> str:
    done = quickstart(path, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def running(path: Path) -> RunningNetwork:
    found = holder(path)
    assert found is not None
    return found


def ports_of(path: Path) -> list[int]:
    nodes = json.loads((path / "site.json").read_text())["nodes"]
    return [port for node in nodes for _, port in node["places"].values()]


def is_listening(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def fetch(url: str, body: bytes | None = None) -> tuple[int, Any]:
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=LIMIT_S) as response:
            return response.status, json.loads(response.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def call(url: str, method: str, *params: Any) -> Any:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    return fetch(url, body)[1].get("result")


def down(address: str) -> list[str]:
    """Return the nodes that do not answer within a second. On a busy machine, this includes slow nodes."""
    return [node["name"] for node in fetch(f"http://{address}/nodes.json")[1]["nodes"] if not node["up"]]


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Start four validators and an RPC node, with blocks every second."""
    path = tmp_path_factory.mktemp("quickstart") / "a rather long name " / "network"
    try:
        shown = succeeded(path, "up", "--detach", "--port=0", "--block-period=1", "--free-gas")
        assert "Every node has a new block after" in shown
        yield path
    finally:
        quickstart(path, "remove")


@pytest.fixture
def address(network: Path) -> str:
    return running(network).address


# --- use by clients ------------------------------------------------------------------------------


def test_web3_and_every_path_of_a_node(network: Path, address: str) -> None:
    web3 = Web3(Web3.HTTPProvider(f"http://{address}/jsonrpc"))
    web3.middleware_onion.inject(ExtraDataToPOAMiddleware, layer=0)
    assert web3.eth.chain_id == 1337
    sent = web3.eth.send_raw_transaction(legacy_transaction(DEV_KEYS[0], 0, gas_price=0, chain_id=1337))
    receipt = web3.eth.wait_for_transaction_receipt(sent, timeout=LIMIT_S)
    assert receipt["status"] == 1
    number = receipt["blockNumber"]
    for name in ("rpcnode", "validator1", "validator2", "validator3", "validator4"):
        url = f"http://{address}/{name}/jsonrpc"
        wait_for(lambda url=url: int(call(url, "eth_blockNumber"), 16) >= number, LIMIT_S, name)
        assert call(url, "eth_getBlockByNumber", hex(number), False)["hash"] == "0x" + receipt["blockHash"].hex()
    wait_for(lambda: call(f"http://{address}/jsonrpc", "net_peerCount") == "0x4", LIMIT_S, "all four are its peers")
    assert len(call(f"http://{address}/validator1/jsonrpc", "qbft_getValidatorsByBlockNumber", "latest")) == 4


def test_the_example_deploys_its_contract(address: str) -> None:
    command = [sys.executable, str(ROOT / "examples" / "python-client" / "deploy.py"), f"http://{address}/jsonrpc"]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "count() answers 42\n" in done.stdout


def test_heads_come_over_the_socket(network: Path, address: str) -> None:
    async def listen(seconds: float) -> None:
        async with (
            websockets.connect(f"ws://{address}/jsonws") as one,
            websockets.connect(f"ws://{address}/validator1/jsonws") as other,
        ):
            for client in (one, other):
                await client.send('{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["newHeads"]}')
                assert "result" in json.loads(await client.recv())
            ends, last = time.monotonic() + seconds, 0
            while time.monotonic() < ends or not last:
                heads = [json.loads(await asyncio.wait_for(client.recv(), LIMIT_S)) for client in (one, other)]
                numbers = [int(head["params"]["result"]["number"], 16) for head in heads]
                assert not last or numbers[0] == last + 1, "no head is missing"
                last = numbers[0]

    asyncio.run(listen(600.0 if IS_LONG else 3.0))


def test_graphql_and_what_there_is(network: Path, address: str) -> None:
    status, found = fetch(f"http://{address}/graphql", b'{"query":"{block{number}}"}')
    assert (status, found["data"]["block"]["number"] > 0) == (200, True)
    status, found = fetch(f"http://{address}/nodes.json")
    assert (found["network"], found["consensus"]) == ("quickstart", "qbft")
    assert [(node["name"], node["role"]) for node in found["nodes"]] == [
        ("rpcnode", "rpc"),
        *((f"validator{number}", "validator") for number in (1, 2, 3, 4)),
    ]
    wait_for(lambda: down(address) == [], LIMIT_S, "all nodes are up")
    assert all(node["enode"].startswith("enode://") for node in found["nodes"])
    status, found = fetch(f"http://{address}/metrics-index")
    assert len(found) == 5
    with urllib.request.urlopen(f"http://{address}/validator1/metrics", timeout=LIMIT_S) as response:
        assert b"ethereum_blockchain_height" in response.read()
    with urllib.request.urlopen(f"http://{address}/", timeout=LIMIT_S) as response:
        assert response.headers["Content-Type"] == "text/html; charset=utf-8"
    assert fetch(f"http://{address}/prometheus/graph")[0] in (404, 502)


def test_the_table_is_in_the_known_order(network: Path, address: str) -> None:
    lines = succeeded(network, "list").splitlines()
    assert [line.partition(" : ")[2].strip() for line in lines[:4]] == [
        f"http://{address}/jsonrpc",
        f"ws://{address}/jsonws",
        f"http://{address}/graphql",
        f"http://{address}/",
    ]
    assert [line.split()[0] for line in lines[4:6]] == ["Prometheus", "Grafana"]
    assert [line.split()[0] for line in lines[-5:]] == ["rpcnode", *(f"validator{number}" for number in (1, 2, 3, 4))]


def test_logs_are_shown_and_followed(network: Path) -> None:
    assert "Ethereum main loop is up." in succeeded(network, "logs", "validator1")
    assert "validator4 | " in succeeded(network, "logs")
    follower = subprocess.Popen(
        [*COMMAND, "quickstart", "logs", "rpcnode", "-f", f"--directory={network}"],
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert follower.stdout is not None
    watchdog = threading.Timer(LIMIT_S, follower.kill)
    watchdog.start()
    assert any("imported block" in line for line in follower.stdout)
    watchdog.cancel()
    follower.send_signal(signal.SIGINT)
    assert follower.wait(LIMIT_S) == 130
    follower.stdout.close()


# --- killed and restarted nodes ------------------------------------------------------------------


def test_a_killed_node_is_reported_offline_and_restarts(network: Path, address: str) -> None:
    url = f"http://{address}/validator2/jsonrpc"
    assert succeeded(network, "kill", "validator2") == "validator2 is killed.\n"
    wait_for(lambda: "validator2" not in running(network).processes, LIMIT_S, "the supervisor notices")
    status, found = fetch(url, b'{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}')
    assert status == 502
    assert found["error"]["message"].startswith("validator2 is down: cannot connect to 127.0.0.1:")
    wait_for(lambda: down(address) == ["validator2"], LIMIT_S, "one node is down")
    before = int(call(f"http://{address}/jsonrpc", "eth_blockNumber"), 16)
    wait_for(
        lambda: int(call(f"http://{address}/jsonrpc", "eth_blockNumber"), 16) > before, LIMIT_S, "three are enough"
    )
    assert quickstart(network, "kill", "validator2").returncode == 1
    assert "down" in next(line for line in succeeded(network, "list").splitlines() if "validator2" in line)
    assert succeeded(network, "start", "validator2").startswith("validator2 started (process ")
    wait_for(lambda: call(url, "eth_blockNumber") is not None, LIMIT_S, "it answers again")
    refused = quickstart(network, "start", "validator2")
    assert (refused.returncode, "validator2 already runs" in refused.stderr) == (1, True)
    os.kill(running(network).processes["validator2"], signal.SIGTERM)
    wait_for(lambda: "validator2" not in running(network).processes, LIMIT_S, "it stops by itself")
    *_, killed, ended = (network / "logs" / "quickstart.log").read_text().splitlines()
    start = f"`ophion quickstart start validator2 {shlex.quote(f'--directory={network}')}` starts it again."
    assert killed == f"validator2 has ended (signal 9); {start}"
    assert ended.startswith("validator2 has ended (exit code 0: "), "with its last words"
    assert ended.endswith(f"Stopped.); {start}")
    succeeded(network, "start", "validator2")
    wait_for(lambda: call(url, "eth_blockNumber") is not None, LIMIT_S, "it answers again")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("kill", "validator9"), "There is no validator9 in this network. Its processes: rpcnode, validator1"),
        (("kill",), "Name the process to kill: one of rpcnode, validator1"),
        (("logs", "node9"), "There is no node9 in this network"),
        (("up",), "A network runs in "),
        (("resume",), "A network runs in "),
        (("up", "--consensus=raft"), "expected one of [QBFT, IBFT2, CLIQUE, DEV]"),
        (("up", "--validators=0"), "--validators must be between 1 and 50"),
    ],
)
def test_failures_are_one_line(network: Path, words: tuple[str, ...], message: str) -> None:
    done = quickstart(network, *words)
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_commands_of_a_running_network_are_those_that_run(network: Path) -> None:
    lines = succeeded(network, "up", "--print-commands").splitlines()
    commands = [line for line in lines if line.startswith("ophion ")]
    assert len(commands) == 6
    pid = running(network).processes["validator1"]
    arguments = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
    assert shlex.split(commands[1])[1:] == arguments[3:-1]
    assert Path(f"/proc/{pid}/cwd").resolve() == Path.cwd(), "where a relative path to this package is true"


# --- stop ----------------------------------------------------------------------------------------


def assert_nothing_runs(processes: list[int], ports: list[int]) -> None:
    wait_for(lambda: not any(is_alive(pid) for pid in processes), LIMIT_S, "every process ends")
    assert not any(is_listening(port) for port in ports)


def test_a_network_is_up_when_its_address_answers(tmp_path: Path) -> None:
    """The start command also waits for the gateway: it does not return while the gateway is frozen, even if every node
    has blocks.
    """
    path = tmp_path / "network"
    words = ("up", "--detach", "--port=0", "--validators=1", "--block-period=1", f"--directory={path}")
    starting = subprocess.Popen([*COMMAND, "quickstart", *words], env=environment(), stdout=subprocess.DEVNULL)
    try:
        wait_for(lambda: (found := holder(path)) is not None and PROXY in found.processes, LIMIT_S, "it starts")
        found = running(path)
        proxy, port = found.processes[PROXY], int(found.address.rpartition(":")[2])
        os.kill(proxy, signal.SIGSTOP)
        try:
            for node in json.loads((path / "ports.json").read_text())["nodes"].values():
                wait_for(lambda at=node["http"]: is_listening(at), LIMIT_S, "the node listens")
                url = f"http://127.0.0.1:{node['http']}"
                wait_for(lambda url=url: int(call(url, "eth_blockNumber"), 16) > 1, LIMIT_S, "its second block")
            assert starting.poll() is None or is_listening(port), "it had begun to listen before it was frozen"
        finally:
            os.kill(proxy, signal.SIGCONT)
        assert starting.wait(LIMIT_S) == 0
        assert int(call(f"http://{running(path).address}/jsonrpc", "eth_blockNumber"), 16) > 1
    finally:
        starting.kill()
        starting.wait()
        quickstart(path, "remove")


def test_stopping_and_resuming_keeps_the_chain_and_removing_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "network"
    succeeded(path, "up", "--detach", "--port=0", "--validators=1", "--block-period=1")
    found, ports = running(path), ports_of(path)
    block = call(f"http://{found.address}/jsonrpc", "eth_getBlockByNumber", "0x1", False)
    refused = quickstart(path, "up", f"--port={found.address.rpartition(':')[2]}")
    assert f"A network runs in {path} already" in refused.stderr, "not only that its own port is taken"
    assert f"`ophion quickstart stop --directory={path}` ends it" in refused.stderr
    assert "Stopped." in succeeded(path, "stop")
    assert_nothing_runs([found.pid, *found.processes.values()], ports)
    assert "does not run" in quickstart(path, "list").stdout
    refused = quickstart(path, "up")
    hint = f"which does not run: `ophion quickstart resume --directory={path}`"
    assert (refused.returncode, hint in refused.stderr) == (1, True)
    shutil.rmtree(path / "logs")
    address = found.address
    succeeded(path, "resume", "--detach")
    found = running(path)
    assert (found.address, ports_of(path)) == (address, ports), "where they were"
    assert call(f"http://{found.address}/jsonrpc", "eth_getBlockByNumber", "0x1", False) == block
    # stop the process of a validator, so that it can neither receive nor send
    os.kill(found.processes["validator1"], signal.SIGSTOP)
    assert succeeded(path, "remove") == f"Removed {path}.\n"
    assert_nothing_runs([found.pid, *found.processes.values()], ports)
    assert list(tmp_path.iterdir()) == []


def test_a_network_ends_with_its_directory(tmp_path: Path) -> None:
    path = tmp_path / "network"
    succeeded(path, "up", "--detach", "--port=0", "--validators=1", "--block-period=1")
    found, ports = running(path), ports_of(path)
    path.rename(tmp_path / "gone")
    wait_for(lambda: not is_alive(found.pid), LIMIT_S, "the supervisor notices")
    assert_nothing_runs([found.pid, *found.processes.values()], ports)


def test_ctrl_c_while_a_detached_network_starts_ends_it(tmp_path: Path) -> None:
    path = tmp_path / "network"
    command = [*COMMAND, "quickstart", "up", "--detach", "--port=0", "--validators=1", f"--directory={path}"]
    starting = subprocess.Popen(command, env=environment(), stderr=subprocess.PIPE, text=True)
    wait_for(lambda: len(getattr(holder(path), "processes", ())) == 3, LIMIT_S)
    processes = [running(path).pid, *running(path).processes.values()]
    starting.send_signal(signal.SIGINT)
    assert starting.communicate(timeout=LIMIT_S) == (None, "Interrupted.\n")
    assert holder(path) is None
    assert not any(map(is_alive, processes))
    succeeded(path, "remove")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
def test_no_process_outlives_the_supervisor(tmp_path: Path, number: signal.Signals) -> None:
    path = tmp_path / "network"
    words = ["up", "--port=0", "--consensus=dev", "--block-period=0", f"--directory={path}"]
    supervisor = subprocess.Popen(
        [*COMMAND, "quickstart", *words], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        wait_for(lambda: (found := holder(path)) is not None and found.is_ready, LIMIT_S, "it starts")
        found, ports = running(path), ports_of(path)
        assert len(found.processes) == 3
        os.kill(supervisor.pid, number)
        out, _ = supervisor.communicate(timeout=LIMIT_S)
        assert_nothing_runs(list(found.processes.values()), ports)
        assert holder(path) is None
        if number is not signal.SIGKILL:
            assert supervisor.returncode == 0
            assert out.endswith("Stopped.\n")
            assert not (path / "control").exists()
        succeeded(path, "remove")
        assert not path.exists()
    finally:
        with suppress(ProcessLookupError):
            supervisor.kill()
        supervisor.wait(LIMIT_S)


def test_a_port_in_use_is_reported_before_anything_is_created(tmp_path: Path) -> None:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        one.listen()
        port = one.getsockname()[1]
        done = quickstart(tmp_path / "network", "up", f"--port={port}")
    assert (done.returncode, f"Port {port} is in use" in done.stderr) == (1, True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["", '{"consensus": "qbft", "validators": 4.0}'])
def test_every_command_says_what_to_do_about_a_damaged_description(tmp_path: Path, text: str) -> None:
    (tmp_path / "network.json").write_text(text)
    (tmp_path / "validator1").mkdir()
    commands = ["up", "up --print-commands", "resume", "list", "stop", "remove", "logs", "kill proxy", "start proxy"]
    for words in commands:
        done = quickstart(tmp_path, *words.split())
        assert done.returncode == 1
        assert done.stderr.startswith(f"{tmp_path}/network.json does not describe a network (")
        assert done.stderr.endswith(f"or delete {tmp_path} to create another there.\n")
    assert (tmp_path / "validator1").is_dir()


KILLED = """
import os, signal, sys
from ophion.cli.main import main

left, replace = int(sys.argv[1]), os.replace
def fatal(*names):
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    replace(*names)
os.replace = fatal
main(sys.argv[2:])
"""


@pytest.mark.parametrize("writes", range(1, 6))
def test_one_that_was_killed_while_it_was_made_is_made_anew_or_removed(tmp_path: Path, writes: int) -> None:
    """The start command is killed before each file gets its final name: the configuration, two keys, the genesis, the
    completion mark.
    """
    path = tmp_path / "network"
    begin = ["quickstart", "up", "--print-commands", "--validators=1", "--port=0", f"--directory={path}"]
    for goes_on in (True, False):
        begun = [sys.executable, "-c", KILLED, str(writes), *begin]
        assert subprocess.run(begun, env=environment(), capture_output=True, timeout=120).returncode == -signal.SIGKILL
        assert not (path / "network.json").exists()
        if goes_on:
            done = quickstart(path, "up", "--print-commands", "--validators=1", "--port=0")
            assert done.returncode == 0, done.stderr
            assert ("was not finished" in done.stderr) == (writes > 1)
        elif writes == 1:
            continue  # the interrupted command has written no file, so no network exists
        else:
            assert "was not finished" in quickstart(path, "resume").stderr
        assert succeeded(path, "remove") == f"Removed {path}.\n"
        assert not path.exists()


def test_a_node_that_does_not_start_ends_everything_and_is_named(tmp_path: Path) -> None:
    path = tmp_path / "network"
    succeeded(path, "up", "--print-commands", "--validators=1", "--port=0")
    (path / "validator1" / "key").write_text("nonsense")
    done = quickstart(path, "resume")
    assert done.returncode == 1
    assert "does not contain valid key pair" in done.stderr
    (path / "validator1" / "key").write_text("1".rjust(64, "0"))
    # a file in place of the database directory prevents only rpcnode from starting
    (path / "rpcnode" / "database").write_text("no directory")
    done = quickstart(path, "resume")
    assert done.returncode == 1
    assert "rpcnode did not start (exit code 1): " in done.stdout
    assert holder(path) is None


@pytest.mark.parametrize(
    "options", [("--consensus=ibft2", "--permissions", "--free-gas"), ("--consensus=clique", "--validators=1")]
)
def test_other_networks(tmp_path: Path, options: tuple[str, ...]) -> None:
    path = tmp_path / "network"
    try:
        succeeded(path, "up", "-d", "--port=0", "--block-period=1", *options)
        url = f"http://{running(path).address}/jsonrpc"
        group = "ibft" if "ibft2" in options[0] else "clique"
        assert group in call(url, "rpc_modules")
        if "--permissions" in options:
            unknown, known = (
                call(url, "eth_sendRawTransaction", "0x" + legacy_transaction(key, 0, gas_price=0, chain_id=6174).hex())
                for key in (PrivateKey(b"\x07" * 32), DEV_KEYS[1])
            )
            wait_for(
                lambda: call(url, "eth_getTransactionReceipt", known) is not None, LIMIT_S, "a listed account may send"
            )
            assert call(url, "eth_getTransactionReceipt", unknown) is None
            assert len(call(url, "perm_getNodesWhitelist")) == 5
    finally:
        quickstart(path, "remove")


def test_members_have_private_transactions_and_others_do_not_see_them(tmp_path: Path) -> None:
    path = tmp_path / "network"
    try:
        shown = succeeded(
            path, "up", "-d", "--port=0", "--block-period=1", "--validators=1", "--privacy", "--permissions"
        )
        address = running(path).address
        urls = [f"http://{address}/member{number}/jsonrpc" for number in (1, 2, 3)]
        for url in urls:
            assert call(url, "priv_status")["keys"][0] in shown
        example = ROOT / "examples" / "privacy" / "client.py"
        said = subprocess.run([sys.executable, str(example), *urls], capture_output=True, text=True, timeout=120)
        assert said.returncode == 0, said.stdout + said.stderr
        assert "A set 123: A reads 123, B reads 123, C reads 0x" in said.stdout
        assert "A and B have the same state" in said.stdout
    finally:
        quickstart(path, "remove")


@pytest.mark.skipif(not IS_LONG, reason="OPHION_QUICKSTART=long")
def test_twenty_times_of_twenty(tmp_path: Path) -> None:
    times = []
    for number in range(20):
        path = tmp_path / f"network{number}"
        began = time.monotonic()
        succeeded(path, "up", "--detach")
        times.append(time.monotonic() - began)
        found, ports = running(path), ports_of(path)
        succeeded(path, "remove")
        assert_nothing_runs([found.pid, *found.processes.values()], ports)
        assert not path.exists()
    print("seconds to the first block on all five:", " ".join(f"{one:.1f}" for one in times))
    assert max(times) < 10
