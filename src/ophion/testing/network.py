"""Networks of real nodes on this machine: validators, followers, and links that can be cut.

Every node is a process of the real command with its own data path and a public test key. The other nodes are its static
peers. With `relayed`, each connection goes through a `Relay`, so that tests can cut links while processes run.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Final

from ophion.chainspec.consensus_parameters import BFT_MIX_HASH
from ophion.consensus.bft.extra_data import BftExtraData, ExtraForm
from ophion.consensus.bft.ibft2_messages import Ibft2
from ophion.consensus.bft.qbft_messages import Qbft
from ophion.native.crypto import PrivateKey
from ophion.primitives.types import Address
from ophion.testing.decrypting_relay import DecryptingRelay
from ophion.testing.node_process import COMMAND, NodeProcess, processor_s
from ophion.testing.ports import free_ports
from ophion.testing.relay import Relay
from ophion.testing.signing import DEV_KEYS

CHAIN_ID: Final = 1337
_LOOPBACK: Final = "127.0.0.1"
_APIS: Final = "ADMIN,ETH,NET,WEB3,IBFT,QBFT,CLIQUE,TXPOOL,DEBUG,EEA"


def member_key(index: int) -> PrivateKey:
    """Return a public test key for the validator or signer with this index."""
    return PrivateKey((0xC0FFEE + index).to_bytes(32, "big"))


def network_genesis(
    engine: str,
    members: Iterable[Address],
    period_s: int = 1,
    timeout_s: int = 2,
    gas_limit: int = 0x1FFFFFFFFFFFFF,
    bft_options: Mapping[str, int] = MappingProxyType({}),
) -> dict[str, Any]:
    """Return a genesis with free gas for these validators or signers. geth and GoQuorum accept it too.

    `bft_options` are further keys of the section of a BFT protocol.
    """
    members = sorted(members)
    forks = ("homestead", "eip150", "eip155", "eip158", "byzantium", "constantinople", "petersburg", "istanbul")
    config: dict[str, Any] = {"chainId": CHAIN_ID, **{f"{fork}Block": 0 for fork in forks}, "berlinBlock": 0}
    if engine == "clique":
        config["clique"] = {"blockperiodseconds": period_s, "epochlength": 30000, "period": period_s, "epoch": 30000}
        extra = bytes(32) + b"".join(members) + bytes(65)
        mix_hash = bytes(32)
    else:
        config[engine] = {
            "blockperiodseconds": period_s,
            "epochlength": 30000,
            "requesttimeoutseconds": timeout_s,
            **bft_options,
        }
        variant = Ibft2() if engine == "ibft2" else Qbft()
        extra = variant.encode_extra(BftExtraData(bytes(32), tuple(members)), ExtraForm.FULL)
        mix_hash = BFT_MIX_HASH
    return {
        "config": config,
        "nonce": "0x0",
        "timestamp": "0x0",
        "gasLimit": hex(gas_limit),
        "difficulty": "0x1",
        "mixHash": "0x" + mix_hash.hex(),
        "coinbase": "0x" + bytes(20).hex(),
        "extraData": "0x" + extra.hex(),
        "alloc": {key.address.hex(): {"balance": str(10**24)} for key in DEV_KEYS},
    }


class TestNetwork:
    """Nodes of one network; a context manager that stops all of them."""

    __test__ = False

    def __init__(
        self,
        path: Path,
        engine: str,
        validators: int = 4,
        followers: int = 0,
        *,
        period_s: int = 1,
        timeout_s: int = 2,
        relayed: bool = False,
        tapped: int | None = None,
        options: Sequence[str] = (),
        clocks: dict[int, float] | None = None,
        own: dict[int, Sequence[str]] | None = None,
        launchers: dict[int, Sequence[str]] | None = None,
        discovering: Collection[int] = (),
        bft_options: Mapping[str, int] = MappingProxyType({}),
        validator_keys: Sequence[PrivateKey] = (),
    ) -> None:
        """Set up a network.

        `clocks` has the seconds by which the clocks of some nodes are ahead. `own` has further options of some nodes.
        `launchers` are programs that run some nodes instead of the command. `tapped` is the node whose received
        messages are recorded. `discovering` are the nodes with discovery. `bft_options` are further keys of the section
        of a BFT protocol. `validator_keys` replaces the first test keys.
        """
        count = validators + followers
        self.path = path
        self.engine = engine
        self.timeout_s = timeout_s
        chosen = validator_keys or [member_key(index) for index in range(validators)]
        self.keys = sorted(chosen, key=lambda key: key.address)
        """Keys of the validators in proposer order, then keys of the followers."""
        self.keys += [member_key(1000 + index) for index in range(followers)]
        self.ports = free_ports(count)
        self.taps = {
            (here, there): DecryptingRelay(self.ports[there], self.keys[there], self.keys[here])
            for here in range(count)
            for there in range(count)
            if tapped in (here, there) and here != there
        }
        self.relays: dict[tuple[int, int], Relay] = {
            (here, there): Relay(self.ports[there])
            for here in range(count)
            for there in range(count)
            if relayed and here != there
        } | self.taps
        self.genesis_file = path / "genesis.json"
        members = [key.address for key in self.keys[:validators]]
        genesis = network_genesis(engine, members, period_s, timeout_s, bft_options=bft_options)
        self.genesis_file.write_text(json.dumps(genesis))
        self._options = options
        self._clocks = clocks or {}
        self._own = own or {}
        self._launchers = launchers or {}
        self._discovering = discovering
        self.nodes = [self._node(index) for index in range(count)]

    def _node(self, index: int) -> NodeProcess:
        self.write_files(index)
        return NodeProcess(
            self.data_path(index),
            f"--genesis-file={self.genesis_file}",
            "--p2p-interface=127.0.0.1",
            f"--p2p-port={self.ports[index]}",
            f"--discovery-enabled={str(index in self._discovering).lower()}",
            "--min-gas-price=0",
            f"--rpc-http-api={_APIS}",
            *self._options,
            *self._own.get(index, ()),
            clock_ahead_s=self._clocks.get(index, 0.0),
            launcher=self._launchers.get(index, COMMAND),
        )

    def data_path(self, index: int) -> Path:
        return self.path / f"node{index}"

    def write_files(self, index: int) -> None:
        """Write the key and the static peers of a node to its data path."""
        path = self.data_path(index)
        path.mkdir(exist_ok=True)
        (path / "key").write_text(self.keys[index].secret().hex())
        (path / "static-nodes.json").write_text(json.dumps(self.neighbours(index)))

    def neighbours(self, index: int) -> list[str]:
        """Return the enode URLs under which a node reaches the other nodes, directly or through relays."""
        return [
            f"enode://{self.keys[other].public_key.hex()}@{_LOOPBACK}:{self.port_of(index, other)}"
            for other in range(len(self.ports))
            if other != index
        ]

    def port_of(self, here: int, there: int) -> int:
        """Return the port on which one node reaches another."""
        relay = self.relays.get((here, there))
        return self.ports[there] if relay is None else relay.port

    # --- actions --------------------------------------------------------------------------------------

    def kill(self, *indexes: int) -> None:
        """Kill nodes."""
        for index in indexes:
            os.kill(self.nodes[index].pid, signal.SIGKILL)
        for index in indexes:
            self.nodes[index].kill()

    def wipe(self, index: int) -> None:
        """Delete the data of a stopped node, except its key."""
        shutil.rmtree(self.data_path(index))
        self.write_files(index)

    def replace_program(self, index: int, launcher: Sequence[str]) -> None:
        """Run a stopped node with another program from now on."""
        self._launchers = {**self._launchers, index: launcher}
        self.nodes[index] = self._node(index)

    def divide(self, *groups: Iterable[int]) -> None:
        """Cut every link between these groups."""
        group_of = {index: number for number, group in enumerate(groups) for index in group}
        for (here, there), relay in self.relays.items():
            relay.is_cut = group_of.get(here) != group_of.get(there)

    def heal(self) -> None:
        """Restore every link."""
        for relay in self.relays.values():
            relay.is_cut = False

    # --- observations ---------------------------------------------------------------------------------

    def recorded(self, index: int) -> list[bytes]:
        """Return every decrypted message that a tapped node has received."""
        found: list[bytes] = []
        for (here, there), tap in self.taps.items():
            found += (tap.to_dialler if here == index else []) + (tap.to_target if there == index else [])
        return found

    def height(self, index: int) -> int:
        return self.nodes[index].height

    def heights(self, indexes: Iterable[int] | None = None) -> list[int]:
        return [self.height(index) for index in (range(len(self.nodes)) if indexes is None else indexes)]

    def processor_s(self) -> float:
        """Return the CPU seconds of all nodes so far."""
        return processor_s(*(node.pid for node in self.nodes))

    def block_hash(self, index: int, number: int) -> str | None:
        block = self.nodes[index].rpc("eth_getBlockByNumber", hex(number), False)
        return None if block is None else block["hash"]

    def agrees(self, indexes: Iterable[int] | None = None, since: int = 0) -> bool:
        """Return whether these nodes have the same blocks up to the lowest head among them."""
        chosen = list(range(len(self.nodes)) if indexes is None else indexes)
        lowest = min(self.heights(chosen))
        return all(len({self.block_hash(one, number) for one in chosen}) == 1 for number in range(since, lowest + 1))

    def wait(self, condition: Callable[[], bool], limit_s: float, what: str = "that") -> float:
        """Wait for a condition; return the elapsed seconds."""
        began = time.monotonic()
        while not condition():
            if time.monotonic() > began + limit_s:
                raise AssertionError(f"{what} did not happen within {limit_s:g} s: heights {self._known_heights()}")
            time.sleep(0.02)
        return time.monotonic() - began

    def grow(self, blocks: int, limit_s: float, indexes: Iterable[int] | None = None) -> float:
        """Wait until each of these nodes is `blocks` above the highest current head; return the elapsed seconds."""
        chosen = list(range(len(self.nodes)) if indexes is None else indexes)
        goal = max(self.heights(chosen)) + blocks
        return self.wait(lambda: min(self.heights(chosen)) >= goal, limit_s, f"block {goal}")

    def _known_heights(self) -> list[str]:
        found = []
        for index, node in enumerate(self.nodes):
            try:
                found.append(str(self.height(index)) if node.is_running else "down")
            except OSError:
                found.append("no answer")
        return found

    def __enter__(self) -> TestNetwork:
        try:
            for relay in self.relays.values():
                relay.start()
            for node in self.nodes:
                node.start()
        except BaseException:
            # close here, because Python does not call `__exit__` after an error in `__enter__`
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop all processes."""
        for node in self.nodes:
            if node.is_running:
                os.kill(node.pid, signal.SIGCONT)
                node.kill()
        for relay in self.relays.values():
            relay.stop()
