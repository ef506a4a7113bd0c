"""Makes nearly correct input, which decoders must survive."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "0"))
"""Number of examples per fuzz target; 0 for a short run that is the same each time."""


def target(examples: int) -> Callable[[Any], Any]:
    """Mark a fuzz target. `examples` is the number of examples in a short run."""
    return settings(
        max_examples=EXAMPLES or examples,
        derandomize=not EXAMPLES,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


_TELLING = bytes((0x00, 0x01, 0x7F, 0x80, 0x81, 0xA0, 0xB7, 0xB8, 0xBF, 0xC0, 0xC1, 0xF7, 0xF8, 0xFA, 0xFF))
"""Bytes at the limits of RLP prefixes."""

_Edit = tuple[int, float, float, bytes]

_edits = st.lists(
    st.tuples(
        st.integers(0, 5),
        st.floats(0, 1, exclude_max=True),
        st.floats(0, 1, exclude_max=True),
        st.one_of(st.sampled_from([bytes((b,)) for b in _TELLING]), st.binary(min_size=1, max_size=8)),
    ),
    min_size=1,
    max_size=4,
)


def mutated(samples: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """Return a strategy that gives a sample after a few edits, or random bytes."""
    return st.one_of(st.builds(_edited, st.sampled_from(samples), _edits), st.binary(max_size=200))


def _edited(sample: bytes, edits: list[_Edit]) -> bytes:
    content = bytearray(sample)
    for kind, where, length, new in edits:
        at = int(where * (len(content) + 1))
        end = at + 1 + int(length * 40)
        if kind == 0:
            content[at : at + len(new)] = new
        elif kind == 1:
            content[at:at] = new
        elif kind == 2:
            del content[at:end]
        elif kind == 3:
            del content[at:]
        elif kind == 4:
            content[at:at] = content[at:end]
        elif at < len(content):
            content[at] ^= 1 << int(length * 8)
    return bytes(content)


ODD_VALUES: tuple[Any, ...] = (
    None,
    True,
    0,
    1,
    -1,
    1.5,
    2**63,
    2**64,
    2**256,
    10**90,
    "",
    "0x",
    "x",
    "0xzz",
    "0x0",
    "-1",
    "0x" + "f" * 64,
    "0x" + "f" * 65,
    "9" * 500,
    "1e5",
    "\u0661\u0662",
    "\ud800",
    " 5 ",
    "two\nlines",
    "\x1b[31m",
    [],
    [1],
    [[]],
    [None],
    {},
    {"a": 1},
    {"": ""},
)
"""Values that are wrong in most or all positions."""


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all keys of a JSON value."""
    members: Iterator[tuple[Any, Any]]
    if isinstance(value, dict):
        members = iter(value.items())
    elif isinstance(value, list):
        members = enumerate(value)
    else:
        return
    for key, member in members:
        yield (*path, key)
        yield from places(member, (*path, key))


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """Return the JSON value with another value at this path."""
    result = copy.deepcopy(value)
    holder = result
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = new
    return result


def mutated_json(samples: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """Return a strategy that gives JSON text with odd values, repeated keys, or a few changed bytes."""
    documents = [json.loads(sample) for sample in samples]
    spots = [(document, path) for document in documents for path in places(document)]
    odd = st.one_of(st.sampled_from(ODD_VALUES), st.text(max_size=5), st.integers())
    swapped = st.builds(lambda spot, new: _text(replaced(spot[0], spot[1], new)), st.sampled_from(spots), odd)
    renamed = st.builds(
        lambda spot, name: _text(_renamed(spot[0], spot[1], name)), st.sampled_from(spots), st.text(max_size=5)
    )
    return st.one_of(swapped, renamed, mutated(samples))


def _text(value: Any) -> bytes:
    return json.dumps(value).encode()


def _renamed(value: Any, path: tuple[Any, ...], name: str) -> Any:
    result = copy.deepcopy(value)
    holder = result
    for key in path[:-1]:
        holder = holder[key]
    if isinstance(holder, dict):
        holder[name] = holder.pop(path[-1])
    return result
