"""Compare the speed of contract tests on an embedded chain with other ways to run the same tests, in one process.

    python bench/chain_object.py [--tests N] [--calls N] [--only NAME,...]

A contract test deploys a token, calls five functions and expects one revert. The ways are eth-tester with py-evm, Anvil
over HTTP (the program named by ANVIL), web3.py on the chain, and the chain's own methods. Ways that are not installed
are skipped. Figures are wall time and processor time of this process, without the processor time of Anvil.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ophion import Chain, Reverted
from ophion.abi.artifact import Artifact
from ophion.chainspec.dev_network import MNEMONIC_ACCOUNTS
from ophion.testing.ports import free_ports

TOKEN = Path(__file__).parents[1] / "tests" / "data" / "contracts" / "Token.json"
ARTIFACT = json.loads(TOKEN.read_text())
SUPPLY = 10**6


@contextmanager
def measured(title: str, count: int, unit: str = "test") -> Iterator[None]:
    """Context manager that prints the time of its `with` block."""
    gc.collect()
    wall, processor = time.perf_counter(), time.process_time()
    yield
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    print(
        f"{title:<34}{1000 * wall / count:>10.3f} ms/{unit:<6}{1000 * processor / count:>10.3f} ms processor"
        f"{count / wall:>12.0f} {unit}s/s",
        flush=True,
    )


def own_test(chain: Chain, artifact: Any) -> None:
    """Run one contract test with the methods of `Chain`."""
    alice, bob = chain.accounts[:2]
    with chain.snapshot():
        token = chain.deploy(artifact, "Coin", SUPPLY)
        token.transfer(bob, 100)
        token.approve(bob, 50)
        token.transferFrom(alice, bob, 20, sender=bob)
        assert token.balanceOf(bob) == 120
        assert token.totalSupply() == SUPPLY
        try:
            token.transfer(alice, SUPPLY, sender=bob)
        except Reverted:
            return
    raise AssertionError("the transfer must fail")


def web3_test(w3: Any) -> None:
    """Run the contract test of `own_test` with web3.py."""
    alice, bob = w3.eth.accounts[:2]
    wait = w3.eth.wait_for_transaction_receipt
    factory = w3.eth.contract(abi=ARTIFACT["abi"], bytecode=ARTIFACT["bytecode"])
    address = wait(factory.constructor("Coin", SUPPLY).transact({"from": alice}))["contractAddress"]
    token = w3.eth.contract(address=address, abi=ARTIFACT["abi"])
    functions = token.functions
    wait(functions.transfer(bob, 100).transact({"from": alice}))
    wait(functions.approve(bob, 50).transact({"from": alice}))
    wait(functions.transferFrom(alice, bob, 20).transact({"from": bob}))
    assert functions.balanceOf(bob).call() == 120
    assert functions.totalSupply().call() == SUPPLY
    try:
        functions.transfer(alice, SUPPLY).transact({"from": bob})
    except Exception:  # noqa: BLE001  # each library has its own error class
        return
    raise AssertionError("the transfer must fail")


def start() -> None:
    """Print the time to import the package and to make the first two chains with a deployment. Each run is a new
    process.
    """
    code = (
        "import time; t = time.perf_counter(); from ophion import Chain; i = time.perf_counter();"
        f"Chain().deploy({str(TOKEN)!r}, 'Coin', 5); d = time.perf_counter();"
        f"Chain().deploy({str(TOKEN)!r}, 'Coin', 5); e = time.perf_counter();"
        "print(i - t, d - i, e - d)"
    )
    found = []
    for _ in range(5):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        found.append([float(one) for one in done.stdout.split()])
    for title, column in (("import", 0), ("first chain and deployment", 1), ("further chain and deployment", 2)):
        print(f"{title:<34}{1000 * min(one[column] for one in found):>10.1f} ms (best of 5)", flush=True)


def own(count: int) -> None:
    artifact = Artifact.of(TOKEN)
    with Chain() as chain, measured("Chain, own methods", count):
        for _ in range(count):
            own_test(chain, artifact)


def through_web3(count: int) -> None:
    with Chain() as chain:
        w3 = chain.web3
        with measured("Chain, web3.py", count):
            for _ in range(count):
                with chain.snapshot():
                    web3_test(w3)


def through_anvil(count: int) -> None:
    program = os.environ.get("ANVIL")
    if program is None:
        print("Anvil: left out, because ANVIL does not name the program")
        return
    from web3 import HTTPProvider, Web3

    (port,) = free_ports(1)
    process = subprocess.Popen([program, "--silent", "--port", str(port)])
    try:
        w3 = Web3(HTTPProvider(f"http://127.0.0.1:{port}"))
        deadline = time.monotonic() + 20
        while not w3.is_connected() and time.monotonic() < deadline:
            time.sleep(0.05)
        with measured("Anvil over HTTP, web3.py", count):
            for _ in range(count):
                web3_test(w3)
    finally:
        process.terminate()
        process.wait()


def through_eth_tester(count: int) -> None:
    try:
        from eth_tester import EthereumTester, PyEVMBackend
        from web3 import EthereumTesterProvider, Web3
    except ImportError as error:
        print(f"eth-tester: left out ({error})")
        return
    tester = EthereumTester(PyEVMBackend())
    w3 = Web3(EthereumTesterProvider(tester))
    with measured("eth-tester with py-evm, web3.py", count):
        for _ in range(count):
            web3_test(w3)


def calls(count: int) -> None:
    """Measure `eth_call` through a contract object and through `chain.call`."""
    with Chain() as chain:
        token = chain.deploy(TOKEN, "Coin", SUPPLY)
        bob = chain.accounts[1]
        with measured("balanceOf, own methods", count, "call"):
            for _ in range(count):
                token.balanceOf(bob)
        data = token.balanceOf.encode(bob)
        with measured("chain.call", count, "call"):
            for _ in range(count):
                chain.call(token, data)


def other_calls(count: int) -> None:
    """Measure the call of `calls` with titanoboa on py-evm, and with pyrevm alone."""
    bytecode = Artifact.of(TOKEN)
    data = bytecode.bytecode + bytecode.abi.constructor.inputs.encode(("Coin", SUPPLY))
    try:
        import boa
    except ImportError as error:
        print(f"titanoboa: left out ({error})")
    else:
        address, _ = boa.env.deploy(bytecode=data)
        token = boa.loads_abi(json.dumps(ARTIFACT["abi"])).at(address)
        with measured("balanceOf, titanoboa with py-evm", count, "call"):
            for _ in range(count):
                token.balanceOf(boa.env.eoa)
    try:
        import pyrevm
    except ImportError as error:
        print(f"pyrevm: left out ({error})")
        return
    evm = pyrevm.EVM()
    sender = "0x" + "11" * 20
    created = evm.deploy(sender, data)
    request = bytecode.abi.functions["balanceOf"][0].encode((sender,))
    with measured("balanceOf, pyrevm without ABI", 20 * count, "call"):
        for _ in range(20 * count):
            evm.message_call(sender, created, calldata=request, is_static=True)


def snapshots(count: int) -> None:
    """Measure pairs of snapshot and revert, and the growth of memory."""
    with Chain() as chain:
        chain.mine()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with measured("snapshot and revert", count, "pair"):
            for _ in range(count):
                chain.restore(chain.save())
        print(f"{'':<34}{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before:>10} KiB more memory")


def branches(count: int) -> None:
    """Measure the time to make branches of one chain, and the memory of branches with a transaction each."""
    with Chain() as chain:
        token = chain.deploy(TOKEN, "Coin", SUPPLY)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with measured("fork_at", count, "branch"):
            made = [chain.fork_at() for _ in range(count)]
        for branch in made:
            branch.attach(token).transfer(chain.accounts[1], 1)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        print(f"{'':<34}{grown:>10} KiB more memory for {count} branches with a transaction each")


_WRITER = """
import select, sys, time
from ophion import Chain
with Chain(sys.argv[1], genesis=sys.argv[2], accounts=2) as chain:
    alice, bob = chain.accounts
    print("ready", flush=True)
    while not select.select([sys.stdin], [], [], 0.01)[0]:
        started = time.perf_counter()
        alice.transfer(bob, 1)
        print(time.perf_counter() - started, flush=True)
"""


def _write(folder: str, genesis: str, work: Callable[[], None]) -> list[float]:
    """Run `work` while another process adds blocks. Returns the time of each block in seconds."""
    command = [sys.executable, "-c", _WRITER, folder, genesis]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        work()
        writer.stdin.close()
        return [float(line) for line in writer.stdout]


def database(accounts: int) -> None:
    """Measure branches of a database with many accounts, while another process writes to it."""
    funded = {one.address.hex(): {"balance": hex(10**22)} for one in MNEMONIC_ACCOUNTS[:10]}
    many = {hashlib.sha256(str(number).encode()).hexdigest()[:40]: {"balance": "1"} for number in range(accounts)}
    config = {"chainId": 1337, "ethash": {"fixeddifficulty": 1}, "londonBlock": 0}
    with tempfile.TemporaryDirectory() as base:
        genesis, folder = str(Path(base) / "genesis.json"), str(Path(base) / "data")
        document = {"config": config, "difficulty": "0x1", "gasLimit": hex(30_000_000), "alloc": funded | many}
        Path(genesis).write_text(json.dumps(document))
        alone = _write(folder, genesis, lambda: time.sleep(2))
        started = time.perf_counter()
        chain = Chain.read(folder, genesis=genesis)
        print(f"{'open the database':<34}{1000 * (time.perf_counter() - started):>10.1f} ms", flush=True)

        def work() -> None:
            gc.collect()
            before = _resident_kib()
            with measured(f"fork_at of {accounts} accounts", 1000, "branch"):
                made = [chain.fork_at() for _ in range(1000)]
            for branch in made:
                branch.accounts[0].transfer(chain.accounts[1], 1)
            print(f"{'':<34}{_resident_kib() - before:>10} KiB more memory for 1000 branches with a transaction each")

        beside = _write(folder, genesis, work)
        shown = [f"{1000 * statistics.median(times):.3f} ms ({len(times)} blocks)" for times in (alone, beside)]
        print(f"{'median block of the writer':<34}{shown[0]} alone, {shown[1]} beside branches")


def depth(blocks: int) -> None:
    """Measure how the number of blocks of a branch affects its speed."""
    with Chain() as chain:
        branch = chain.fork_at()
        alice, bob = branch.accounts[:2]
        for part in range(4):
            with measured(f"branch, blocks {part * blocks} to {(part + 1) * blocks}", blocks, "block"):
                for _ in range(blocks):
                    alice.transfer(bob, 1)


def _resident_kib() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() // 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", type=int, default=200)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    steps: dict[str, Callable[[], None]] = {
        "start": start,
        "own": lambda: own(options.tests),
        "web3": lambda: through_web3(options.tests),
        "anvil": lambda: through_anvil(options.tests),
        "eth-tester": lambda: through_eth_tester(max(1, options.tests // 10)),
        "calls": lambda: calls(options.calls),
        "other-calls": lambda: other_calls(max(1, options.calls // 100)),
        "snapshots": lambda: snapshots(options.calls),
        "branches": lambda: branches(1000),
        "depth": lambda: depth(1000),
        "database": lambda: database(300_000),
    }
    chosen = options.only.split(",") if options.only else list(steps)
    for name in chosen:
        steps[name]()


if __name__ == "__main__":
    main()
