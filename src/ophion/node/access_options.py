"""Options of all interfaces: names of the node, prices, texts and fields of answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ophion.rpc.dispatch.error_wording import ErrorWording
from ophion.rpc.schema.answer_fields import AnswerFields
from ophion.runtime.options import Options, at_least, between, option
from ophion.runtime.options.values import read_int

_WILDCARDS = frozenset({"*", "all"})


def names_list(noun: str) -> Callable[[Any], None]:
    """Return a check for a list of names. `*`, `all` or `none` must be the only entry of a list."""

    def check(names: Sequence[str]) -> None:
        if len(names) < 2:
            return
        if not _WILDCARDS.isdisjoint(names):
            raise ValueError(f"Values '*' or 'all' can't be used with other {noun}")
        if "none" in names:
            raise ValueError(f"Value 'none' can't be used with other {noun}")

    return check


def _percentile(text: str) -> int:
    """Read a whole number. A decimal point with zeros (50.0) is accepted, because Besu writes percentiles like this."""
    whole, _, fraction = text.partition(".")
    return read_int(text if fraction.strip("0") else whole)


class AccessConfig(Options):
    """Access to the public interface."""

    host_allow_list: tuple[str, ...] = option(
        "--host-whitelist",
        "--host-allowlist",
        default=("localhost", "127.0.0.1"),
        check=names_list("hostnames"),
        help="Names under which clients may address this node (Host header): names, addresses, `*` or `none`.",
    )
    error_wording: ErrorWording = option(
        "--rpc-error-wording",
        default=ErrorWording.ORIGINAL,
        help="Texts of JSON-RPC errors: those of Pantheon 1.2, or the modern ones that libraries look for. "
        "`geth` also has go-ethereum's codes, `anvil` has Anvil's texts and codes.",
    )
    answer_fields: AnswerFields = option(
        "--rpc-answer-fields",
        default=AnswerFields.CURRENT,
        help="Fields of JSON-RPC answers. Values other than `current` omit blockTimestamp, and blob fees in "
        "eth_feeHistory, which older clients do not have.",
    )
    gas_price_blocks: int = option(
        "--api-gas-price-blocks",
        default=100,
        check=between(1, 10_000),
        help="Number of blocks that eth_gasPrice looks at.",
    )
    gas_price_percentile: int = option(
        "--api-gas-price-percentile",
        default=50,
        metavar="NUMBER",
        parse=_percentile,
        check=between(0, 100),
        help="Percentile of the prices in these blocks that eth_gasPrice returns.",
    )
    gas_price_max: int = option(
        "--api-gas-price-max",
        default=500_000_000_000,
        check=at_least(0),
        help="Upper limit of eth_gasPrice in wei.",
    )
    revert_reason_enabled: bool = option(
        "--revert-reason-enabled",
        default=False,
        help="Store the revert reason of failed transactions and show it in their receipts.",
    )
