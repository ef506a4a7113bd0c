"""Fixtures for tests of real client libraries against real nodes.

web3.py includes tests that its authors run against every client (`web3._utils.module_testing`). These tests need
fixtures with certain names. This module defines them, for synchronous and for asynchronous use. Each class has its own
node and data directory.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ophion.rpc.schema.render import checksum_address
from ophion.testing.node_process import NodeProcess
from tests.clients.contracts import KEY, SENDER, checksummed, contract_on, data_of, deployed, sent, which_event

DEV = (
    "--rpc-ws-port=0",
    "--graphql-http-enabled=false",
    "--logging=WARN",
    # the tests of web3.py expect the chain id and the coinbase of web3.py's own test fixture
    "--override-genesis-config=chainId=131277322940537",
    f"--miner-coinbase=0x{'00' * 20}",
    # the tests need a node with enabled peers, and a development node has peers disabled by default
    *("--p2p-enabled=true", "--p2p-host=127.0.0.1", "--p2p-interface=127.0.0.1", "--p2p-port=0"),
    "--discovery-enabled=false",
)

NEEDS_PENDING = ("modify_transaction", "replace_transaction", "unmined")
"""Cases whose transactions must still be pending at the next request. Blocks are paused during these cases."""
NEEDS_BLOCKS = ("already_mined",)

_GETH = "geth's own: its name, and starting and stopping its servers"
_DIALS = "dials an address that is not of this machine, or itself"
NOT_APPLICABLE = {
    "test_invalid_eth_sign_typed_data": "expects the exception of eth-tester, which runs inside of web3.py",
    "test_add_peer": _DIALS,
    "test_admin_peers": _DIALS,
    "test_admin_start_stop_http": _GETH,
    "test_admin_start_stop_ws": _GETH,
    "test_async_node_info": _GETH,
}
"""Cases of module_testing that cannot pass here, with the reason."""
NOT_APPLICABLE_ASYNC = {
    "test_eth_sign_typed_data": "web3.py 8.0.0 fails before it asks: its asynchronous form cannot walk through objects",
}
_GIVES_UP = (
    "web3.py calls it unreliable: it gives up after 10 ms, on a busy machine in the middle of a request, and the"
    " provider then waits for an answer that it has thrown away"
)
NOT_APPLICABLE_WEBSOCKET = {"test_async_eth_wait_for_transaction_receipt_unmined": _GIVES_UP}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "asyncio: a coroutine, run in the loop of its class")
    # some batch cases of web3.py never send their requests, which causes this warning
    config.addinivalue_line("filterwarnings", "ignore:coroutine 'AsyncEth.get_block' was never awaited:RuntimeWarning")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run coroutines in the event loop in which their connection was made."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    loop: asyncio.AbstractEventLoop = pyfuncitem.funcargs["loop"]
    loop.run_until_complete(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture(autouse=True)
def applicable(request: pytest.FixtureRequest) -> None:
    listed = NOT_APPLICABLE
    if inspect.iscoroutinefunction(request.function):
        listed = NOT_APPLICABLE | NOT_APPLICABLE_ASYNC
    if request.module.__name__.endswith("websocket"):
        listed = listed | NOT_APPLICABLE_WEBSOCKET
    reason = listed.get(request.node.originalname)
    if reason is not None:
        pytest.skip(reason)


@pytest.fixture(scope="class")
def node(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    options = (*DEV, *getattr(request.cls, "OPTIONS", ()))
    with NodeProcess(tmp_path_factory.mktemp("node") / "data", *options, command=("dev",)) as started:
        for _ in range(6):  # make some blocks, because some cases request the first blocks by number
            sent(started, to="0x" + "d0" * 20, value="0x1")
        yield started


@pytest.fixture(scope="class")
def http_url(node: NodeProcess) -> str:
    return f"http://127.0.0.1:{node.ports['json-rpc']}"


@pytest.fixture(scope="class")
def ws_url(node: NodeProcess) -> str:
    return f"ws://127.0.0.1:{node.ports['ws-rpc']}"


@pytest.fixture(autouse=True)
def pause(request: pytest.FixtureRequest) -> Iterator[None]:
    """Pause block production while a test case replaces its transactions."""
    name = request.node.name
    if any(word in name for word in NEEDS_BLOCKS) or not any(word in name for word in NEEDS_PENDING):
        yield
        return
    node: NodeProcess = request.getfixturevalue("node")
    node.rpc("miner_stop")
    yield
    node.rpc("miner_start")


# --- used by both kinds --------------------------------------------------------------------------


@pytest.fixture(scope="class")
def keyfile_account_pkey() -> str:
    return "0x" + KEY.hex()


@pytest.fixture(scope="class")
def keyfile_account_address() -> str:
    return checksum_address(SENDER)


@pytest.fixture(params=["text", "bytes"])
def keyfile_account_address_dual_type(request: pytest.FixtureRequest) -> str | bytes:
    return checksum_address(SENDER) if request.param == "text" else SENDER


@pytest.fixture(scope="class")
def mined_txn_hash(node: NodeProcess) -> str:
    return sent(node, to="0x" + "d0" * 20, value="0x1")["transactionHash"]


@pytest.fixture(scope="class")
def math_receipt(node: NodeProcess) -> dict[str, Any]:
    return deployed(node, "math")


@pytest.fixture(scope="class")
def math_contract_deploy_txn_hash(math_receipt: dict[str, Any]) -> str:
    return math_receipt["transactionHash"]


@pytest.fixture(scope="class")
def math_contract_address(math_receipt: dict[str, Any]) -> str:
    return checksummed(math_receipt["contractAddress"])


@pytest.fixture(scope="class")
def emitter_contract_address(node: NodeProcess) -> str:
    return checksummed(deployed(node, "emitter")["contractAddress"])


@pytest.fixture(scope="class")
def datadir(node: NodeProcess) -> str:
    return str(node.data_path)


@pytest.fixture(scope="class")
def txn_hash_with_log(node: NodeProcess, emitter_contract_address: str) -> str:
    """Send `logDouble(12345, 54321)` to the emitter, whose event has two numbers."""
    from web3 import Web3

    contract = Web3().eth.contract(address=emitter_contract_address, abi=data_of("emitter")["abi"])
    event = contract.encode_abi("logDouble", [which_event("LogDoubleWithIndex"), 12345, 54321])
    return sent(node, to=emitter_contract_address, data=event)["transactionHash"]


@pytest.fixture(scope="class")
def request_mocker() -> Any:
    from web3._utils.module_testing.utils import RequestMocker

    return RequestMocker


@pytest.fixture(scope="class")
def skip_if_testrpc() -> Callable[[Any], None]:
    return lambda w3: None


# --- synchronous ---------------------------------------------------------------------------------


@pytest.fixture(scope="class")
def w3(http_url: str) -> Any:
    from web3 import Web3

    return Web3(Web3.HTTPProvider(http_url))


@pytest.fixture(scope="class")
def empty_block(w3: Any) -> Any:
    """Return block 1, which is the only empty block."""
    return w3.eth.get_block(0)


@pytest.fixture(scope="class")
def block_with_txn(w3: Any, mined_txn_hash: str) -> Any:
    return w3.eth.get_block(w3.eth.get_transaction(mined_txn_hash)["blockNumber"])


@pytest.fixture(scope="class")
def block_with_txn_with_log(w3: Any, txn_hash_with_log: str) -> Any:
    return w3.eth.get_block(w3.eth.get_transaction(txn_hash_with_log)["blockNumber"])


@pytest.fixture(scope="class")
def math_contract(w3: Any, math_contract_address: str) -> Any:
    return w3.eth.contract(address=math_contract_address, abi=data_of("math")["abi"])


@pytest.fixture(scope="class")
def emitter_contract(w3: Any, emitter_contract_address: str) -> Any:
    return w3.eth.contract(address=emitter_contract_address, abi=data_of("emitter")["abi"])


@pytest.fixture(scope="class")
def revert_contract(w3: Any, node: NodeProcess) -> Any:
    return contract_on(w3, node, "revert")


@pytest.fixture(scope="class")
def storage_contract(w3: Any, node: NodeProcess) -> Any:
    return contract_on(w3, node, "storage")


@pytest.fixture(scope="class")
def panic_errors_contract(w3: Any, node: NodeProcess) -> Any:
    return contract_on(w3, node, "panic")


@pytest.fixture(scope="class")
def offchain_lookup_contract(w3: Any, node: NodeProcess) -> Any:
    return contract_on(w3, node, "offchain")


# --- asynchronous --------------------------------------------------------------------------------


@pytest.fixture(scope="class")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


@pytest.fixture(scope="class")
def async_skip_if_testrpc() -> Callable[[Any], None]:
    return lambda w3: None


@pytest.fixture(scope="class")
def async_keyfile_account_address(keyfile_account_address: str) -> str:
    return keyfile_account_address


@pytest.fixture
def async_keyfile_account_address_dual_type(keyfile_account_address: str) -> str:
    """Return the address as text, because a test case compares it with text."""
    return keyfile_account_address


@pytest.fixture(scope="class")
def async_emitter_contract_address(emitter_contract_address: str) -> str:
    return emitter_contract_address


@pytest.fixture(scope="class")
def async_math_contract_address(math_contract_address: str) -> str:
    return math_contract_address


@pytest.fixture(scope="class")
def async_empty_block(async_w3: Any, loop: asyncio.AbstractEventLoop) -> Any:
    return loop.run_until_complete(async_w3.eth.get_block(0))


@pytest.fixture(scope="class")
def async_block_with_txn(async_w3: Any, loop: asyncio.AbstractEventLoop, mined_txn_hash: str) -> Any:
    return loop.run_until_complete(block_of(async_w3, mined_txn_hash))


@pytest.fixture(scope="class")
def async_block_with_txn_with_log(async_w3: Any, loop: asyncio.AbstractEventLoop, txn_hash_with_log: str) -> Any:
    return loop.run_until_complete(block_of(async_w3, txn_hash_with_log))


@pytest.fixture(scope="class")
def async_math_contract(async_w3: Any, math_contract_address: str) -> Any:
    return async_w3.eth.contract(address=math_contract_address, abi=data_of("math")["abi"])


@pytest.fixture(scope="class")
def async_emitter_contract(async_w3: Any, emitter_contract_address: str) -> Any:
    return async_w3.eth.contract(address=emitter_contract_address, abi=data_of("emitter")["abi"])


@pytest.fixture(scope="class")
def async_revert_contract(async_w3: Any, node: NodeProcess) -> Any:
    return contract_on(async_w3, node, "revert")


@pytest.fixture(scope="class")
def async_storage_contract(async_w3: Any, node: NodeProcess) -> Any:
    return contract_on(async_w3, node, "storage")


@pytest.fixture(scope="class")
def async_panic_errors_contract(async_w3: Any, node: NodeProcess) -> Any:
    return contract_on(async_w3, node, "panic")


@pytest.fixture(scope="class")
def async_offchain_lookup_contract(async_w3: Any, node: NodeProcess) -> Any:
    return contract_on(async_w3, node, "offchain")


async def block_of(w3: Any, hash: str) -> Any:
    return await w3.eth.get_block((await w3.eth.get_transaction(hash))["blockNumber"])
