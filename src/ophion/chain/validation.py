"""Checks a block's body and results against its header.

The engine has already verified the header. Rust checks each transaction during execution. The rules in this module
concern the block as a whole.
"""

from __future__ import annotations

from typing import Final

from ophion.chainspec.forks import Fork, Milestone
from ophion.errors import InvalidBlock
from ophion.native.executor import Execution
from ophion.native.transactions import Body
from ophion.primitives.header import Header

MAX_BLOCK_SIZE: Final = 8 * 2**20
"""Maximum RLP size of a block from Osaka on (EIP-7934: 10 MiB less a margin of 2 MiB)."""


def check_belongs(header: Header, body: Body) -> None:
    """Check that the body matches the header.

    A mismatch does not make the block invalid, because the right body for this header may still arrive.
    """
    _same("ommers hash", body.ommers_hash, header.ommers_hash)
    _same("transactions root", body.transactions_root, header.transactions_root)
    _same("withdrawals root", body.withdrawals_root, header.withdrawals_root)


def check_body(header: Header, body: Body, fork: Fork) -> None:
    """Check the blob gas of all transactions against the header, and the size of the block against its limit."""
    _same("blob gas used", body.blob_gas, header.blob_gas_used or 0)
    if fork.has(Milestone.OSAKA):
        size = len(body.encode_block(header.encode()))
        if size > MAX_BLOCK_SIZE:
            raise InvalidBlock("block size", size, f"at most {MAX_BLOCK_SIZE}")


def check_results(header: Header, execution: Execution) -> None:
    """Check the results of the execution against the header."""
    _same("gas used", execution.gas_used, header.gas_used)
    _same("receipts root", execution.receipts_root, header.receipts_root)
    if execution.logs_bloom != header.logs_bloom:
        # do not print the two blooms, because 256 bytes each would make the message unreadable
        raise InvalidBlock("logs bloom", "another bloom than the logs give")
    if header.requests_hash is not None:
        _same("requests hash", execution.requests_hash, header.requests_hash)
    _same("state root", execution.state_root, header.state_root)


def _same(rule: str, computed: object, claimed: object) -> None:
    if computed != claimed:
        raise InvalidBlock(rule, "nothing" if claimed is None else claimed, "nothing" if computed is None else computed)
