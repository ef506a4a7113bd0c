"""The contracts of web3.py's tests, deployed by an account of the node."""

from __future__ import annotations

from typing import Any

from ophion.chainspec.dev_network import MNEMONIC_ACCOUNTS
from ophion.rpc.schema.render import checksum_address
from ophion.testing.node_process import NodeProcess

SENDER = MNEMONIC_ACCOUNTS[0].address
KEY = MNEMONIC_ACCOUNTS[0].private_key
"""A public test key."""


def data_of(name: str) -> dict[str, Any]:
    """Return ABI and code of one of web3.py's contracts."""
    from web3._utils.contract_sources.contract_data import (
        emitter_contract,
        math_contract,
        offchain_lookup,
        panic_errors_contract,
        revert_contract,
        storage_contract,
    )

    found: dict[str, dict[str, Any]] = {
        "math": math_contract.MATH_CONTRACT_DATA,
        "emitter": emitter_contract.EMITTER_CONTRACT_DATA,
        "revert": revert_contract.REVERT_CONTRACT_DATA,
        "storage": storage_contract.STORAGE_CONTRACT_DATA,
        "panic": panic_errors_contract.PANIC_ERRORS_CONTRACT_DATA,
        "offchain": offchain_lookup.OFFCHAIN_LOOKUP_DATA,
    }
    return found[name]


def which_event(name: str) -> int:
    """Return the number of an event in the emitter's list."""
    from web3._utils.contract_sources.contract_data._custom_contract_data import EMITTER_ENUM

    return int(EMITTER_ENUM[name])


def sent(node: NodeProcess, **members: str) -> dict[str, Any]:
    """Send a transaction that the node signs, and return its receipt."""
    return node.receipt(node.rpc("eth_sendTransaction", {"from": f"0x{SENDER.hex()}", **members}))


def deployed(node: NodeProcess, name: str) -> dict[str, Any]:
    """Deploy a contract; return the receipt."""
    return sent(node, data=data_of(name)["bytecode"])


def contract_on(w3: Any, node: NodeProcess, name: str) -> Any:
    """Deploy a contract; return it as a web3.py object."""
    return w3.eth.contract(address=checksummed(deployed(node, name)["contractAddress"]), abi=data_of(name)["abi"])


def checksummed(address: str) -> str:
    return checksum_address(bytes.fromhex(address[2:]))
