"""`Chain`: a development chain inside Python.

>>> from ophion import Chain
>>> chain = Chain()
>>> alice, bob = chain.accounts[:2]
>>> receipt = alice.transfer(bob, 5)
>>> receipt.succeeded, chain.block_number
(True, 1)
>>> with chain.snapshot():
...     chain.mine(10)
...     chain.block_number
11
>>> chain.block_number
1
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ophion.abi.addresses import shortened
from ophion.abi.artifact import Artifact
from ophion.abi.interface import Abi, Function, decode_error
from ophion.errors import AbiError, OphionError
from ophion.primitives.hexcodec import data as hex_text
from ophion.sdk import arguments
from ophion.sdk.account import raw_address
from ophion.sdk.backend import Backend, Block, CallResult, CallSpec, PlainResult, block_tag
from ophion.sdk.block_access import BlockAccess
from ophion.sdk.contract import Contract, encoded_arguments
from ophion.sdk.embedded_chain import DEFAULT_TIMESTAMP, embedded_node
from ophion.sdk.embedded_node import EmbeddedNode
from ophion.sdk.errors import ArgumentError, ChainError, Reverted
from ophion.sdk.receipt import Events, Receipt, decoded_event

if TYPE_CHECKING:
    from web3 import AsyncWeb3, Web3

    from ophion.sdk.call_tree import CallTree
    from ophion.sdk.coverage import Coverage
    from ophion.sdk.gas_report import GasReport
    from ophion.sdk.http_server import ChainServer
    from ophion.sdk.replay import Replay


class Chain(BlockAccess):
    """A chain with everything that a development node can do.

    `Chain()` is in memory. `Chain(path)` keeps its blocks in a data directory. Both are repeatable: the same calls give
    the same addresses, timestamps and hashes. Several threads may call methods. A forked process needs a chain of its
    own.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        genesis: Mapping[str, Any] | str | os.PathLike[str] | None = None,
        fork: str | None = None,
        block: int | None = None,
        chain_id: int | None = None,
        hardfork: str | None = None,
        accounts: int = 10,
        balance: float = 10_000,
        timestamp: int = DEFAULT_TIMESTAMP,
        block_interval: int = 1,
        mnemonic: str | None = None,
        base_fee: int | None = None,
        gas_limit: int | None = None,
        backend: Backend | None = None,
    ) -> None:
        """Create a chain, or open the chain in `path`.

        `genesis` is a genesis document or its path. `hardfork` is the latest fork, such as `cancun`. The number of
        accounts is `accounts`, with `balance` ether each. Blocks are `block_interval` seconds apart, from `timestamp`
        on.

        `fork` is the URL of a node. The chain continues that node's chain from `block` on, and fetches state when it is
        first read.
        """
        if block is not None and fork is None:
            raise ChainError("`block` is the block of a fork: give its source with fork=URL.")
        super().__init__(
            embedded_node(
                path=None if path is None else arguments.file_path("path", path),
                genesis=genesis,
                chain_id=arguments.optional_number("chain_id", chain_id, first=1),
                hardfork=arguments.text("hardfork", hardfork),
                accounts=arguments.whole_number("accounts", accounts, arguments.MAX_ACCOUNTS),
                balance=arguments.ether("balance", balance),
                timestamp=arguments.whole_number("timestamp", timestamp, arguments.UINT64, " of seconds"),
                interval=arguments.whole_number("block_interval", block_interval, arguments.MAX_INTERVAL_S),
                mnemonic=arguments.text("mnemonic", mnemonic),
                base_fee=arguments.optional_number("base_fee", base_fee),
                gas_limit=arguments.optional_number("gas_limit", gas_limit),
                fork=arguments.text("fork", fork),
                fork_block=arguments.optional_number("block", block),
            )
            if backend is None
            else backend
        )
        self.gas_report: GasReport | None = None
        """If set, records the gas of every transaction to a contract."""
        self.coverage: Coverage | None = None
        """If set, records the executed lines of transactions and calls."""
        self.last_receipt: Receipt | None = None
        """Receipt of the newest transaction, even if the transaction failed."""
        self._contracts: dict[bytes, tuple[str, Abi]] = {}

    @classmethod
    def connect(cls, url: str) -> Chain:
        """Return a chain that uses a running node. Cheat codes work if the node supports them."""
        # lazy import: few programs need this module
        from ophion.sdk.remote_node import RemoteNode

        return cls(backend=RemoteNode(arguments.url(url)))

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        *,
        genesis: Mapping[str, Any] | str | os.PathLike[str] | None = None,
        at: int | None = None,
    ) -> Chain:
        """Return a branch of the chain in a data directory, even while a node uses the directory. The database does not
        change.

        `genesis` is the genesis of the node; a development network needs none. `at` is a block, by default the latest.
        """
        from ophion.sdk.stored_chain import stored_branch

        number = arguments.optional_number("at", at)
        return cls(backend=stored_branch(arguments.file_path("path", path), genesis, number))

    # --- contracts ------------------------------------------------------------------------------

    def deploy(
        self,
        artifact: Artifact | Mapping[str, Any] | str | os.PathLike[str],
        *args: Any,
        sender: Any = None,
        value: int = 0,
        gas: int | None = None,
        **named: Any,
    ) -> Contract:
        """Deploy a contract and return it. The artifact is the output of a compiler, or the path of a file with
        that output.
        """
        if not isinstance(artifact, Artifact | Mapping):
            artifact = arguments.file_path("artifact", artifact)
        compiled = Artifact.of(artifact)
        constructor = compiled.abi.constructor
        data = compiled.bytecode + encoded_arguments(compiled.name, constructor, args, named)
        value, gas, _ = arguments.transaction_options(value, gas, None)
        if not data:
            raise ChainError(f"{compiled.name} has no bytecode: an interface or abstract contract cannot be deployed")
        receipt = self.transact(CallSpec(self.sender_of(sender), None, data, value, gas), compiled.name, constructor)
        contract = self.contract(receipt.contract_address, compiled.abi, compiled.name)
        contract.has_code = True
        contract.deployment = receipt
        receipt.contract = contract
        return contract

    def contract(self, address: Any, abi: Abi | Sequence[Any] | Artifact, name: str = "Contract") -> Contract:
        """Return an existing contract; the ABI may be a list of signatures, such as `f(uint256) view`."""
        if isinstance(abi, Artifact):
            name, interface = abi.name, abi.abi
        else:
            try:
                interface = Abi.of(abi)
            except AbiError as error:
                raise ArgumentError(f"abi: {error.message}") from None
        contract = Contract(self, address, interface, name)
        self._contracts[contract.raw] = (name, contract.abi)
        return contract

    def known_contract(self, address: bytes) -> tuple[str, Abi] | None:
        """Return name and ABI of a contract; None unless this object has deployed or loaded the contract."""
        return self._contracts.get(address)

    def known_contracts(self) -> dict[bytes, tuple[str, Abi]]:
        """Return names and ABIs of all known contracts, by address."""
        return dict(self._contracts)

    def forget_contracts(self, kept: Mapping[bytes, tuple[str, Abi]]) -> None:
        """Forget all contracts except `kept`, after the chain was reset to an earlier state."""
        self._contracts = dict(kept)

    # --- transactions ---------------------------------------------------------------------------

    def send(
        self,
        to: Any = None,
        data: bytes | str = b"",
        *,
        value: int = 0,
        sender: Any = None,
        gas: int | None = None,
        nonce: int | None = None,
    ) -> Receipt:
        """Send a transaction and return its receipt; raises `Reverted` when it fails.

        A transaction without a recipient creates a contract.
        """
        recipient = None if to is None else raw_address(to, "to")
        options = arguments.transaction_options(value, gas, nonce)
        return self.transact(CallSpec(self.sender_of(sender), recipient, arguments.byte_string("data", data), *options))

    def transact(self, spec: CallSpec, name: str = "", function: Function | None = None) -> Receipt:
        """Send a transaction; `name` and `function` are shown in errors and in the gas report."""
        sent = self.backend.send(spec)
        receipt = self.last_receipt = Receipt(self, sent)
        if self.gas_report is not None and function is not None:
            self.gas_report.add(name, function.name, receipt.gas_used)
        if self.coverage is not None and sent.succeeded is not None:
            self.coverage.add(self.backend.request("trace_replayTransaction", [receipt.hash, ["vmTrace"]]))
        if sent.succeeded is False:
            raise self._failure(spec, receipt, sent.output, f"{name}.{function.name}" if function is not None else "")
        return receipt

    def call(
        self,
        to: Any,
        data: bytes | str = b"",
        *,
        value: int = 0,
        sender: Any = None,
        gas: int | None = None,
        block: Block = None,
    ) -> bytes:
        """Run a call without a transaction and return its output."""
        recipient = None if to is None else raw_address(to, "to")
        options = arguments.transaction_options(value, gas, None)
        spec = CallSpec(self.sender_of(sender), recipient, arguments.byte_string("data", data), *options)
        outcome = self.run_call(spec, arguments.block(block))
        if outcome.kind != "returned":
            raise self.call_error(outcome)
        return outcome.output

    def run_call(self, spec: CallSpec, block: Block) -> CallResult:
        """Run a call and return its outcome, even if the call failed."""
        if self.coverage is not None:
            request = {"from": hex_text(spec.sender), "value": hex(spec.value), "data": hex_text(spec.data)}
            if spec.to is not None:
                request["to"] = hex_text(spec.to)
            self.coverage.add(self.backend.request("trace_call", [request, ["vmTrace"], block_tag(block)]))
        return self.backend.call(spec, block)

    def call_error(self, outcome: CallResult, what: str = "", receipt: Receipt | None = None) -> Reverted:
        """Return the error of a failed call."""
        reason = "reverted" if outcome.kind == "reverted" else outcome.reason or outcome.kind
        decoded = decode_error(outcome.output, (abi for _, abi in self._contracts.values()))
        return Reverted(reason, decoded, what, receipt, outcome.gas_used)

    def _failure(self, spec: CallSpec, receipt: Receipt, output: bytes, what: str) -> Reverted:
        outcome: CallResult = PlainResult("reverted", output, receipt.gas_used)
        if not output:
            # an out-of-gas or other halt has no revert data, so repeat the transaction as a call to get the reason
            again = self.backend.call(spec, receipt.block_number - 1)
            if again.kind == "halted":
                outcome = again
        return self.call_error(outcome, what, receipt)

    def decode_logs(self, logs: Sequence[Mapping[str, Any]]) -> Events:
        """Decode logs of JSON-RPC with the contracts that this object knows."""
        try:
            return Events([decoded_event(one, self._contracts) for one in logs])
        except (TypeError, LookupError, ValueError):
            raise ArgumentError("logs: this is not a list of logs as eth_getLogs returns them.") from None

    def trace(self, transaction: Receipt | str | bytes) -> CallTree:
        """Run a mined transaction again and return its calls as a printable tree."""
        from ophion.sdk.call_tree import CallTree

        hash = arguments.transaction_hash(transaction)
        frame = self.rpc("debug_traceTransaction", hash, {"tracer": "callTracer", "tracerConfig": {"withLog": True}})
        if frame is None:
            raise ChainError(f"There is no mined transaction {hash}.")
        return CallTree(frame, self.known_contract)

    # --- time travel ----------------------------------------------------------------------------

    def at(self, block: int) -> Chain:
        """Return the chain as it was at a block, read-only."""
        return self._branched(block, is_writable=False)

    def fork_at(self, block: int | None = None) -> Chain:
        """Return a branch of the chain at a block, the latest by default. The branch shares all state and copies
        nothing.
        """
        return self._branched(block, is_writable=True)

    def _branched(self, block: int | None, is_writable: bool) -> Chain:
        from ophion.sdk.branch import Branch

        if not isinstance(self.backend, EmbeddedNode | Branch):
            raise ChainError("A chain behind a URL has no branches. Chain.read(path) opens the database of a node.")
        number = arguments.optional_number("block", block)
        made = Chain(backend=self.backend.branch(number, is_writable))
        made._contracts.update(self._contracts)
        return made

    def replay(
        self,
        transaction: Receipt | str | bytes,
        *,
        code: Mapping[Any, bytes | str] | None = None,
        storage: Mapping[Any, Mapping[int, int]] | None = None,
        balances: Mapping[Any, int] | None = None,
        gas: int | None = None,
    ) -> Replay:
        """Run a mined transaction again with other code, storage, balances or gas, and show what differs."""
        from ophion.sdk.replay import replayed

        hash = arguments.transaction_hash(transaction)
        gas = arguments.optional_number("gas", gas)
        codes, balances = arguments.mapping("code", code), arguments.mapping("balances", balances)
        return replayed(self, hash, codes, arguments.mapping("storage", storage), balances, gas)

    def attach(self, contract: Contract) -> Contract:
        """Return a contract of another chain or branch as a contract of this chain, at the same address."""
        if not isinstance(contract, Contract):
            raise ArgumentError(f"contract: {shortened(contract)} is not a contract of a chain or a branch.")
        return self.contract(contract.address, contract.abi, contract.contract_name)

    # --- other interfaces -----------------------------------------------------------------------

    def rpc(self, method: str, *params: Any) -> Any:
        """Return the result of any JSON-RPC method of the node; raises `RpcError`."""
        try:
            return self.backend.request(arguments.method_name(method), params)
        except (TypeError, RecursionError) as error:
            # wrong parameters give an RpcError, so any other error means that JSON cannot express the parameters
            if isinstance(error, OphionError):
                raise
            raise ArgumentError(f"{method}: the parameters cannot be written as JSON: {error}") from None

    @cached_property
    def web3(self) -> Web3:
        """The chain as a `Web3` of web3.py, without a socket in between."""
        from ophion.sdk.web3_provider import web3_of

        return web3_of(self)

    @cached_property
    def async_web3(self) -> AsyncWeb3[Any]:
        """The chain as an `AsyncWeb3` of web3.py."""
        from ophion.sdk.web3_provider import async_web3_of

        return async_web3_of(self)

    def serve(self, port: int = 0, host: str = "127.0.0.1") -> ChainServer:
        """Serve JSON-RPC over HTTP and WebSocket to other programs. Port 0 selects a free port."""
        from ophion.sdk.http_server import ChainServer

        return ChainServer(self.node, *arguments.listener(host, port))

    @property
    def node(self) -> EmbeddedNode:
        """The node in this process; raises `ChainError` for a chain behind a URL."""
        if not isinstance(self.backend, EmbeddedNode):
            raise ChainError("This chain has no node in this process.")
        return self.backend

    def close(self) -> None:
        """Release memory and files. A chain that is not closed is released with its object."""
        self.backend.close()

    def __enter__(self) -> Chain:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        try:
            return f"<Chain id={self.chain_id} block={self.block_number}>"
        except ChainError as error:
            return f"<Chain: {error.message}>"

    def _repr_html_(self) -> str:
        from ophion.sdk.html import table

        rows = {"chain id": self.chain_id, "block": self.block_number, "time": self.time}
        return table("Chain", rows | {"accounts": len(self.accounts), "contracts": len(self._contracts)})
