"""Compares the browser's ABI decoder, ABI encoder and Keccak with eth-abi and known hashes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ophion.testing.node_process import NodeProcess
from tests.browser.chromium import Browser

eth_abi = pytest.importorskip("eth_abi")
grammar = pytest.importorskip("eth_abi.grammar")
keccak = pytest.importorskip("eth_utils").keccak

PLAIN = (
    """
    const shown = (value) => Array.isArray(value) ? value.map(shown)
      : typeof value === "bigint" ? value.toString() : value;
    window.decoded = (types, data) => { try { return shown(abi.decode(types.map((type) => ({ type })), data)); }
      catch (error) { if (error instanceof abi.AbiError) return { error: error.message }; throw error; } };
    window.encoded = (types, values) => abi.encode(types.map((type) => ({ type })), values);
    """
)  # fmt: skip


@pytest.fixture(scope="module")
def page(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    options = ("--page-http-port=0", "--rpc-ws-port=0", "--graphql-http-port=0")
    with NodeProcess(tmp_path_factory.mktemp("abi") / "data", *options, command=("dev",)) as node:
        browser.open(f"http://127.0.0.1:{node.ports['page-http']}/icon.svg")
        browser.value(f"import('/lib/abi_codec.js').then((abi) => {{ {PLAIN} }})")
        browser.value("import('/lib/keccak.js').then((one) => { window.keccakHex = one.keccakHex; })")
        yield browser


BASES = st.one_of(
    st.sampled_from(["address", "bool", "string", "bytes"]),
    st.integers(1, 32).map(lambda size: f"bytes{size}"),
    st.integers(1, 32).map(lambda size: f"uint{8 * size}"),
    st.integers(1, 32).map(lambda size: f"int{8 * size}"),
)
TYPES = st.recursive(
    BASES,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["[]", "[1]", "[3]"])).map("".join),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: f"({','.join(parts)})"),
    ),
    max_leaves=5,
)


def values(type: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for the values of a type."""
    if type.arrlist:
        size = type.arrlist[-1]
        inner = values(type.item_type)
        return st.lists(inner, min_size=size[0] if size else 0, max_size=size[0] if size else 3)
    if hasattr(type, "components"):
        return st.tuples(*map(values, type.components))
    if type.base in ("uint", "int"):
        low, high = (0, 2**type.sub - 1) if type.base == "uint" else (-(2 ** (type.sub - 1)), 2 ** (type.sub - 1) - 1)
        return st.integers(low, high)
    if type.base == "bool":
        return st.booleans()
    if type.base == "string":
        return st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
    if type.base == "address":
        return st.binary(min_size=20, max_size=20).map(lambda raw: "0x" + raw.hex())
    return st.binary(min_size=type.sub or 0, max_size=type.sub or 70)


def plain(value: Any) -> Any:
    """Return a value in the form that the page shows."""
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, tuple | list):
        return [plain(one) for one in value]
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[str], list[Any]]:
    types = draw(st.lists(TYPES, min_size=1, max_size=3))
    return types, [draw(values(grammar.parse(type))) for type in types]


@settings(max_examples=60)
@given(case=cases())
def test_values_are_read_and_written_as_others_do(page: Browser, case: tuple[list[str], list[Any]]) -> None:
    types, given_values = case
    data = "0x" + eth_abi.encode(types, given_values).hex()
    decoded = page.value(f"decoded({json.dumps(types)}, {json.dumps(data)})")
    assert decoded == plain(given_values)
    assert page.value(f"encoded({json.dumps(types)}, {json.dumps(decoded)})") == data


@settings(max_examples=60)
@given(types=st.lists(TYPES, min_size=1, max_size=3), data=st.binary(max_size=400))
def test_bad_data_is_an_error_or_what_others_read(page: Browser, types: list[str], data: bytes) -> None:
    decoded = page.value(f"decoded({json.dumps(types)}, '0x{data.hex()}')")
    if isinstance(decoded, dict):
        return  # the page may refuse data that eth-abi accepts, and then shows the raw data
    try:
        expected = plain(eth_abi.decode(types, data))
    except eth_abi.exceptions.DecodingError as error:
        # eth-abi refuses padding that is not zero, but the page ignores such padding
        assert "zeros" in str(error) or "padding" in str(error).lower(), (decoded, error)
    except UnicodeDecodeError:
        pass  # eth-abi refuses invalid UTF-8, for which the page shows replacement characters
    else:
        assert decoded == expected


def test_an_array_cannot_claim_more_than_is_there(page: Browser) -> None:
    word = lambda number: f"{number:064x}"  # noqa: E731
    for length in (2**255, 2**32, 5000):
        decoded = page.value(f"decoded(['uint8[0][]'], '0x{word(32)}{word(length)}')")
        assert "error" in decoded
    assert "error" in page.value("decoded(['uint256[1000000000]'], '0x')")


@settings(max_examples=25)
@given(message=st.binary(max_size=300))
def test_keccak(page: Browser, message: bytes) -> None:
    assert page.value(f"keccakHex(Uint8Array.from({list(message)}))") == "0x" + keccak(message).hex()
