"""Tests `Chain`: accounts, contracts, time, snapshots."""

from __future__ import annotations

import asyncio
import doctest
import gc
import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ophion import Chain, ChainError, Reverted
from ophion.errors import AbiError, RpcError
from ophion.sdk import account
from ophion.sdk import chain as chain_module
from ophion.sdk.contract import Contract
from ophion.sdk.errors import TransactionRefused
from tests.unit.sdk.contracts import TOKEN, VAULT


@pytest.fixture
def chain() -> Iterator[Chain]:
    with Chain() as made:
        yield made


@pytest.fixture
def token(chain: Chain) -> Contract:
    return chain.deploy(TOKEN, "Coin", 1000)


@pytest.mark.parametrize("module", [chain_module, account])
def test_examples(module: Any) -> None:
    assert doctest.testmod(module).failed == 0


def test_runs_are_repeatable() -> None:
    def run() -> tuple[str, str, str]:
        with Chain() as chain:
            token = chain.deploy(TOKEN, "Coin", 5)
            token.transfer(chain.accounts[1], 1)
            return token.address, chain.block()["hash"], chain.block()["timestamp"]

    assert run() == run()


def test_calls_are_typed(token: Contract) -> None:
    alice, bob = token.chain.accounts[:2]
    assert (token.name(), token.totalSupply(), token.balanceOf(alice)) == ("Coin", 1000, 1000)
    assert token.holder(bob, "note") == (bob, 0, "note")
    assert token.holder(bob, note="note").owner == bob
    assert token.pair().supply == 1000
    assert token.overloaded(1) == 2
    assert token.overloaded("text") == "text"
    assert token["overloaded(uint256)"](7) == 8
    assert token.contract_name == "Token"


def test_transactions_have_events_and_results(token: Contract) -> None:
    alice, bob = token.chain.accounts[:2]
    receipt = token.transfer(bob, 5)
    event = receipt.events.one("Transfer")
    assert (event.value, event["to"], event.args["from"]) == (5, bob, alice)
    assert receipt.succeeded
    assert receipt.return_value is True
    assert receipt.gas_used == int(receipt.fields["gasUsed"], 16)
    assert [one.value for one in token.events("Transfer")] == [1000, 5]


def test_errors_are_decoded(token: Contract) -> None:
    alice, bob = token.chain.accounts[:2]
    with pytest.raises(Reverted) as caught:
        token.transfer(alice, 5, sender=bob)
    error = caught.value
    assert error.name == "InsufficientBalance"
    assert error.args_by_name == {"owner": bob, "available": 0, "required": 5}
    assert error.receipt is not None
    assert not error.receipt.succeeded
    with pytest.raises(Reverted, match="allowance too low"):
        token.transferFrom(alice, bob, 1, sender=bob)
    with pytest.raises(Reverted, match="division by zero") as caught:
        token.divide(1, 0)
    assert caught.value.receipt is None


def test_a_failed_call_inside_of_another_contract_is_decoded(chain: Chain, token: Contract) -> None:
    vault = chain.deploy(VAULT, token)
    token.approve(vault, 5000)
    with pytest.raises(Reverted) as caught:
        vault.deposit(2000)
    assert caught.value.name == "InsufficientBalance"


def test_a_halt_names_its_reason(token: Contract) -> None:
    with pytest.raises(Reverted, match="gas"):
        token.spin(gas=60_000)


def test_wrong_arguments_send_nothing(token: Contract) -> None:
    with pytest.raises(AbiError, match="argument value"):
        token.transfer(token.chain.accounts[1], -1)
    with pytest.raises(TypeError, match="2 arguments are expected"):
        token.transfer(token.chain.accounts[1])
    with pytest.raises(AttributeError, match="has no function 'missing'"):
        token.missing()
    assert token.chain.block_number == 1


def test_a_call_of_an_empty_address_is_an_error(chain: Chain, token: Contract) -> None:
    other = chain.contract("0x" + "11" * 20, token.abi)
    with pytest.raises(AbiError, match="there is no contract at"):
        other.totalSupply()


def test_call_trees(chain: Chain, token: Contract) -> None:
    vault = chain.deploy(VAULT, token)
    token.approve(vault, 100)
    text = str(vault.deposit(7).trace())
    assert text.startswith("Vault.deposit(value=7)")
    assert "└── emit Deposited" in text
    assert "Token.transferFrom" in text


def test_snapshots(chain: Chain, token: Contract) -> None:
    bob = chain.accounts[1]
    with chain.snapshot():
        token.transfer(bob, 5)
        chain.time += 1000
        chain.mine()
        assert token.balanceOf(bob) == 5
    assert (token.balanceOf(bob), chain.block_number) == (0, 1)
    saved = chain.save()
    chain.restore(saved)
    with pytest.raises(ChainError, match="no saved state"):
        chain.restore(saved)


def test_time(chain: Chain) -> None:
    start = chain.time
    chain.mine()
    assert int(chain.block()["timestamp"], 16) == start
    assert chain.time == start + 1
    chain.time += 3600
    chain.mine(3, interval=10)
    assert int(chain.block()["timestamp"], 16) == start + 3601 + 20


def test_edits_of_the_state(chain: Chain, token: Contract) -> None:
    other = chain.account("0x" + "22" * 20)
    other.balance = 10**18
    assert other.balance == 10**18
    chain.set_nonce(other, 7)
    assert other.nonce == 7
    chain.set_code(other, token.chain.code(token))
    chain.set_storage(other, 1, 99)
    assert chain.contract(other, token.abi).totalSupply() == 99
    assert chain.storage(other, 1) == (99).to_bytes(32, "big")


def test_impersonation(chain: Chain, token: Contract) -> None:
    impersonated = "0x" + "33" * 20
    chain.set_balance(impersonated, 10**18)
    with pytest.raises(TransactionRefused, match="There is no key"):
        token.transfer(chain.accounts[0], 0, sender=impersonated)
    assert token.transfer(chain.accounts[0], 0, sender=chain.impersonate(impersonated)).succeeded
    chain.stop_impersonating(impersonated)
    with pytest.raises(TransactionRefused):
        token.transfer(chain.accounts[0], 0, sender=impersonated)


def test_transactions_that_the_pool_refuses(chain: Chain) -> None:
    poor = chain.impersonate("0x" + "44" * 20)
    with pytest.raises(TransactionRefused):
        poor.transfer(chain.accounts[0], 1)
    with pytest.raises(TransactionRefused):
        chain.send(chain.accounts[1], nonce=0, value=chain.accounts[0].balance)


def test_paused_mining(chain: Chain) -> None:
    alice, bob = chain.accounts[:2]
    with chain.paused_mining():
        receipts = [alice.transfer(bob, 1) for _ in range(3)]
        assert receipts[0].is_pending
        with pytest.raises(ChainError, match="not in a block"):
            _ = receipts[0].fields
    assert {one.block_number for one in receipts} == {1}
    assert all(one.succeeded for one in receipts)


def test_json_rpc_is_that_of_the_node(chain: Chain, token: Contract) -> None:
    alice, bob = chain.accounts[:2]
    assert chain.rpc("eth_blockNumber") == "0x1"
    sent = chain.rpc("eth_sendTransaction", {"from": alice, "to": bob, "value": hex(5)})
    assert chain.rpc("eth_getTransactionReceipt", sent)["status"] == "0x1"
    assert chain.block_number == 2
    with pytest.raises(RpcError) as caught:
        chain.rpc("eth_missing")
    assert caught.value.code == -32601
    data = "0x" + token.transfer.encode(bob, 5000).hex()
    with pytest.raises(RpcError, match="revert"):
        chain.rpc("eth_call", {"from": alice, "to": token, "data": data}, "latest")


def test_a_chain_on_disk(tmp_path: Path) -> None:
    with Chain(tmp_path / "data") as chain:
        token = chain.deploy(TOKEN, "Coin", 1000)
        address, head = token.address, chain.block()["hash"]
    with Chain(tmp_path / "data") as chain:
        assert chain.block()["hash"] == head
        assert chain.contract(address, token.abi).totalSupply() == 1000


def test_the_file_mode_mask_of_the_process_stays(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        Chain(tmp_path / "data").close()
        after = os.umask(0o022)
    finally:
        os.umask(before)
    assert after == 0o022


def test_a_genesis_of_its_own(tmp_path: Path) -> None:
    document = {
        "config": {"chainId": 77, "londonBlock": 0, "shanghaiTime": 0},
        "gasLimit": "0x1c9c380",
        "difficulty": "0x1",
        "alloc": {"f39fd6e51aad88f6f4ce6ab8827279cfffb92266": {"balance": "1000000000000000000000"}},
    }
    with Chain(genesis=document) as chain:
        assert chain.chain_id == 77
        assert chain.accounts[0].balance == 1000 * 10**18
        assert chain.deploy(TOKEN, "Coin", 5).totalSupply() == 5
    with pytest.raises(ChainError):
        Chain(genesis=tmp_path / "missing.json")
    with pytest.raises(ChainError):
        Chain(genesis={"config": 5})


def test_choices() -> None:
    with Chain(chain_id=5, accounts=3, balance=7, hardfork="london", timestamp=2_000_000_000, block_interval=12) as one:
        assert one.chain_id == 5
        assert [account.balance for account in one.accounts] == [7 * 10**18] * 3
        assert one.time == 2_000_000_012
    with pytest.raises(ChainError, match="Unknown fork nowhere"):
        Chain(hardfork="nowhere")
    with pytest.raises(ChainError, match="cannot be forked.*Connection refused"):
        Chain(fork="http://localhost:1")
    with pytest.raises(ChainError, match="fork=URL"):
        Chain(block=5)


def test_nothing_remains_of_a_chain_in_memory() -> None:
    folder = Path("/dev/shm")
    if not folder.is_dir():
        pytest.skip("this system has no memory folder")
    with Chain() as chain:
        chain.mine()
        opened = {os.readlink(entry.path) for entry in os.scandir("/proc/self/fd") if os.path.islink(entry.path)}
        own = [one for one in opened if one.startswith(f"{folder}/ophion-")]
        assert own, "the database lies in memory"
        assert all(one.endswith("(deleted)") for one in own)


def test_a_chain_that_is_not_closed_is_released() -> None:
    def files() -> int:
        return len(os.listdir("/proc/self/fd"))

    gc.collect()
    before = files()
    for _ in range(5):
        Chain().mine()
    gc.collect()
    assert files() <= before + 1


def test_threads(chain: Chain, token: Contract) -> None:
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for _ in range(10):
                token.transfer(chain.accounts[9], 1, sender=chain.accounts[0])
                assert token.totalSupply() == 1000
        except BaseException as error:  # noqa: BLE001  # the test shows the error
            failures.append(error)

    threads = [threading.Thread(target=work, args=(one,)) for one in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert token.balanceOf(chain.accounts[9]) == 40


def test_inside_of_an_event_loop(chain: Chain, token: Contract) -> None:
    async def story() -> int:
        token.transfer(chain.accounts[1], 5)
        assert chain.rpc("eth_blockNumber") == "0x2"
        chain.time += 5
        result: int = token.balanceOf(chain.accounts[1])
        return result

    assert asyncio.run(story()) == 5
    assert token.balanceOf(chain.accounts[1]) == 5


def _in_child(chain: Chain, queue: Any) -> None:
    try:
        chain.mine()
        queue.put("mined")
    except ChainError as error:
        queue.put(str(error))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_gets_a_clear_error(chain: Chain) -> None:
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(chain, queue))
    child.start()
    assert "Create a Chain after the fork" in queue.get(timeout=20)
    child.join()
    chain.mine()


def test_a_closed_chain_says_so() -> None:
    chain = Chain()
    chain.close()
    chain.close()
    with pytest.raises(ChainError, match="is closed"):
        chain.mine()
    with pytest.raises(ChainError, match="is closed"):
        chain.balance("0x" + "11" * 20)


@pytest.mark.parametrize("setting", ["gc.enable()", "gc.disable()"])
def test_the_import_leaves_the_garbage_collector_as_it_was(setting: str) -> None:
    script = f"import gc; {setting}; from ophion import Chain; print(gc.isenabled(), gc.get_freeze_count())"
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert shown.stdout.split() == [str(setting == "gc.enable()"), "0"]


def test_objects_that_a_program_excludes_from_collections_stay_excluded() -> None:
    script = "import gc; kept = [[] for _ in range(9_999)]; gc.freeze(); from ophion import Chain;"
    script += "print(gc.get_freeze_count())"
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert int(shown.stdout) > 9_999


def test_objects_of_the_import_are_old() -> None:
    script = "import gc; from ophion import Chain; print(len(gc.get_objects(generation=0)))"
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert int(shown.stdout) < 1_000
