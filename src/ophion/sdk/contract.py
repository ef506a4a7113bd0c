"""`Contract`: a contract with typed calls, decoded events and decoded errors.

A function that changes nothing (`view`, `pure`) is called and returns its result. Any other function is sent as a
transaction and returns its receipt; `call` simulates the function instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ophion.abi.addresses import checksum_address
from ophion.abi.interface import Abi, Function
from ophion.errors import AbiError
from ophion.sdk import arguments
from ophion.sdk.account import raw_address
from ophion.sdk.backend import Block, CallSpec, block_tag
from ophion.sdk.errors import ArgumentError, OutputError, UnknownName
from ophion.sdk.receipt import Events, Receipt

if TYPE_CHECKING:
    from ophion.sdk.chain import Chain


def encoded_arguments(contract: str, function: Function, args: tuple[Any, ...], named: dict[str, Any]) -> bytes:
    """Encode arguments in their declared order. Raises `ArgumentError`, which names contract, function and argument."""
    try:
        return function.inputs.encode(function.inputs.bind(args, named))
    except AbiError as error:
        raise wrong_argument(contract, function, error) from None


def wrong_argument(contract: str, function: Function, error: AbiError) -> ArgumentError:
    """Return the error of an argument that does not fit a function."""
    return ArgumentError(f"{contract}.{function.signature}: {error.message}")


class ContractMethod:
    """One function of a contract."""

    __slots__ = ("_chain", "_contract", "_overloads", "_to", "name")

    def __init__(self, contract: Contract, name: str, overloads: list[Function]) -> None:
        self._contract = contract
        self._chain = contract.chain
        self._to = contract.raw
        self._overloads = overloads
        self.name = name

    def __call__(
        self,
        *args: Any,
        sender: Any = None,
        value: int = 0,
        gas: int | None = None,
        nonce: int | None = None,
        block: Block = None,
        **named: Any,
    ) -> Any:
        """Call a `view` or `pure` function and return its result, or send a transaction and return its receipt."""
        function = self._select(args, named)
        if not function.is_view:
            if block is not None:
                raise ArgumentError(f"{self.name} is a transaction: it has no block. Use .call(..., block=...)")
            return self._transact(function, args, named, sender, value, gas, nonce)
        return self._call(function, args, named, sender, value, gas, block)

    def call(
        self,
        *args: Any,
        sender: Any = None,
        value: int = 0,
        gas: int | None = None,
        block: Block = None,
        **named: Any,
    ) -> Any:
        """Run the function without a transaction and return its result."""
        return self._call(self._select(args, named), args, named, sender, value, gas, block)

    def transact(
        self,
        *args: Any,
        sender: Any = None,
        value: int = 0,
        gas: int | None = None,
        nonce: int | None = None,
        **named: Any,
    ) -> Receipt:
        """Send a transaction and return its receipt; raises `Reverted` when it fails."""
        return self._transact(self._select(args, named), args, named, sender, value, gas, nonce)

    def estimate_gas(self, *args: Any, sender: Any = None, value: int = 0, **named: Any) -> int:
        """Return a gas limit that is enough for a transaction."""
        data, amount = self.encode(*args, **named), arguments.wei("value", value)
        spec = CallSpec(self._chain.sender_of(sender), self._to, data, amount)
        return self._chain.backend.estimate_gas(spec)

    def encode(self, *args: Any, **named: Any) -> bytes:
        """Return the call data."""
        function = self._select(args, named)
        return function.selector + encoded_arguments(self._contract.contract_name, function, args, named)

    @property
    def signature(self) -> str:
        """Name and types of the function; for an overloaded function, all variants."""
        return ", ".join(one.signature for one in self._overloads)

    def _call(
        self,
        function: Function,
        args: tuple[Any, ...],
        named: dict[str, Any],
        sender: Any,
        value: int,
        gas: int | None,
        block: Block,
    ) -> Any:
        chain = self._chain
        try:
            data = function.encode(function.inputs.bind(args, named))
        except AbiError as error:
            raise wrong_argument(self._contract.contract_name, function, error) from None
        if type(value) is not int or value or gas is not None or block is not None:
            value, gas, _ = arguments.transaction_options(value, gas, None)
            block = arguments.block(block)
        spec = CallSpec(chain.sender_of(sender), self._to, data, value, gas)
        outcome = chain.backend.call(spec, block) if chain.coverage is None else chain.run_call(spec, block)
        if outcome.kind != "returned":
            raise chain.call_error(outcome, f"{self._contract.contract_name}.{self.name}")
        output = outcome.output
        if not output and function.outputs.codecs and not chain.backend.code(self._to, block):
            raise OutputError(f"there is no contract at {self._contract.address}")
        try:
            return function.decode_output(output)
        except AbiError as error:
            raise OutputError(
                f"{self._contract.contract_name}.{function.signature}: the result does not fit the ABI: {error.message}"
            ) from None

    def _transact(
        self,
        function: Function,
        args: tuple[Any, ...],
        named: dict[str, Any],
        sender: Any,
        value: int,
        gas: int | None,
        nonce: int | None,
    ) -> Receipt:
        chain = self._chain
        contract = self._contract
        data = function.selector + encoded_arguments(contract.contract_name, function, args, named)
        if type(value) is not int or value or gas is not None or nonce is not None:
            value, gas, nonce = arguments.transaction_options(value, gas, nonce)
        if not contract.has_code:
            contract.check_code()
        spec = CallSpec(chain.sender_of(sender), self._to, data, value, gas, nonce)
        return chain.transact(spec, contract.contract_name, function)

    def _select(self, args: tuple[Any, ...], named: dict[str, Any]) -> Function:
        overloads = self._overloads
        if len(overloads) == 1:
            return overloads[0]
        fitting = []
        for one in overloads:
            try:
                one.encode(one.inputs.bind(args, named))
            except AbiError:
                continue
            fitting.append(one)
        if len(fitting) == 1:
            return fitting[0]
        wanted = "none takes" if not fitting else "several take"
        raise ArgumentError(
            f"{self.name} is overloaded and {wanted} these arguments: choose one with"
            f" contract['{overloads[0].signature}'](...). There are: {self.signature}"
        )

    def __repr__(self) -> str:
        return f"<method {self._contract.contract_name}: {self.signature}>"


class Contract:
    """A contract of a chain. Its functions are attributes; `contract["name(types)"]` selects an overloaded function."""

    def __init__(self, chain: Chain, address: Any, abi: Abi, name: str = "Contract") -> None:
        self.chain = chain
        self.raw = raw_address(address)
        self.has_code = False
        """Whether the address is known to have code."""
        self.address = checksum_address(self.raw)
        self.abi = abi
        self.contract_name = name
        self.deployment: Receipt | None = None
        """Receipt of the deployment. None for a contract that already existed."""
        for name in abi.functions:
            if hasattr(Contract, name):
                # if a contract function has the name of an attribute of this class, the function takes precedence
                self.__dict__[name] = self._method(name)

    def __getattr__(self, name: str) -> ContractMethod:
        if name.startswith("__"):
            raise AttributeError(name)
        method = self._method(name)
        # store the function, so that the next access does not call `__getattr__` again
        self.__dict__[name] = method
        return method

    def _method(self, name: str) -> ContractMethod:
        overloads = self.__dict__["abi"].functions.get(name)
        if overloads is None:
            known = ", ".join(sorted(self.abi.functions)) or "none"
            raise UnknownName(f"{self.contract_name} has no function '{name}'. Functions: {known}")
        return ContractMethod(self, name, overloads)

    def __getitem__(self, signature: Any) -> ContractMethod:
        if not isinstance(signature, str):
            raise ArgumentError(f"{self.contract_name}[...] takes the name or the signature of a function, as text.")
        try:
            function = self.abi.function(signature)
        except AbiError as error:
            raise UnknownName(f"{self.contract_name}: {error.message}") from None
        return ContractMethod(self, function.name, [function])

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *self.abi.functions})

    def events(self, name: Any = None, from_block: Block = 0, to_block: Block = None) -> Events:
        """Return the events of this contract in a range of blocks."""
        first, last = arguments.block(from_block, "from_block"), arguments.block(to_block, "to_block")
        criteria: dict[str, Any] = {
            "address": self.address,
            "fromBlock": block_tag(first),
            "toBlock": block_tag(last),
        }
        if name is not None:
            event = self.abi.events.get(name) if isinstance(name, str) else None
            if event is None:
                known = ", ".join(sorted(self.abi.events)) or "none"
                raise UnknownName(f"{self.contract_name} has no event {name!r}. Events: {known}")
            criteria["topics"] = ["0x" + event.topic.hex()]
        return self.chain.decode_logs(self.chain.rpc("eth_getLogs", criteria))

    def check_code(self) -> None:
        """Raise `OutputError` if the address has no code. While mining is paused, nothing is checked, because a pending
        transaction may still create the contract.
        """
        if not self.chain.is_mining_paused and not self.chain.code(self):
            raise OutputError(f"there is no contract at {self.address}, so a transaction would do nothing")
        self.has_code = True

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Contract):
            return self.raw == other.raw and self.chain is other.chain
        return isinstance(other, str) and self.address.lower() == other.lower()

    def __hash__(self) -> int:
        return hash(self.address)

    def __repr__(self) -> str:
        return f"<{self.contract_name} {self.address}>"

    def _repr_html_(self) -> str:
        from ophion.sdk.html import table

        rows: dict[str, object] = {"address": self.address, "balance": f"{self.chain.balance(self)} wei"}
        rows["functions"] = ", ".join(
            sorted(one.signature for several in self.abi.functions.values() for one in several)
        )
        return table(self.contract_name, rows)
