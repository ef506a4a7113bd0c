"""Hypothesis strategies of ABI values.

@given(abi_values("(address,uint256)[]"))
def test_takes_all_orders(orders): ...
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from ophion.abi.addresses import checksum_address
from ophion.abi.codec import Codec
from ophion.abi.interface import Function
from ophion.abi.type_parser import parse_type

_MAX_ITEMS = 5
_MAX_BYTES = 100


def abi_values(type_name: str | Codec, addresses: Sequence[bytes] = ()) -> st.SearchStrategy[Any]:
    """Return a strategy for values of an ABI type. Addresses are drawn from `addresses`, if any are given."""
    codec = parse_type(type_name) if isinstance(type_name, str) else type_name
    if codec.components:
        return st.tuples(*(abi_values(one, addresses) for one in codec.components))
    if codec.item is not None:
        fewest, most = (0, _MAX_ITEMS) if codec.length is None else (codec.length, codec.length)
        return st.lists(abi_values(codec.item, addresses), min_size=fewest, max_size=most)
    return _elementary(codec.name, addresses)


def _elementary(name: str, addresses: Sequence[bytes]) -> st.SearchStrategy[Any]:
    if name == "address":
        raw = st.sampled_from(list(addresses)) if addresses else st.binary(min_size=20, max_size=20)
        return raw.map(checksum_address)
    if name == "bool":
        return st.booleans()
    if name == "string":
        return st.text(st.characters(codec="utf-8"), max_size=_MAX_BYTES)
    if name == "bytes":
        return st.binary(max_size=_MAX_BYTES)
    if name.startswith("uint"):
        return st.integers(0, 2 ** int(name[4:]) - 1)
    if name.startswith("int"):
        bound = 2 ** (int(name[3:]) - 1)
        return st.integers(-bound, bound - 1)
    size = 24 if name == "function" else int(name.removeprefix("bytes"))
    return st.binary(min_size=size, max_size=size)


def arguments_of(function: Function, addresses: Sequence[bytes] = ()) -> st.SearchStrategy[tuple[Any, ...]]:
    """Return a strategy for the arguments of a function."""
    return st.tuples(*(abi_values(codec, addresses) for codec in function.inputs.codecs))
