"""Encoders and decoders of ABI values, one object per type.

    parse_type("(address,uint256[])[]")  ->  Codec with `encode` and `decode`

A codec is compiled once: `encode` and `decode` are closures without a lookup of types. Decoding is strict: dirty
padding, offsets outside of the data and impossible lengths raise `AbiError`.

>>> codec = parse_type("(address,uint256[])")
>>> data = codec.encode(("0x" + "11" * 20, [1, 2]))
>>> codec.decode(data, 0)
('0x1111111111111111111111111111111111111111', [1, 2])
"""

from __future__ import annotations

import re
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from keyword import iskeyword
from typing import Any

from ophion.errors import OphionError
from ophion.native.crypto import keccak256

WORD_BYTES = 32
_MAX_DEPTH = 32
_ZERO_PADDING = bytes(WORD_BYTES)
_ARRAY = re.compile(r"^(.*)\[(\d*)\]$", re.DOTALL)
_NUMBER = re.compile(r"^(u?int)(\d*)$")
_FIXED_BYTES = re.compile(r"^bytes(\d+)$")

Encode = Callable[[Any], bytes]
Decode = Callable[[bytes, int], Any]


class AbiError(OphionError):
    """A value that does not fit its ABI type, or data that is not a valid encoding."""


class Codec:
    """Encoder and decoder of one type."""

    __slots__ = ("components", "decode", "encode", "head_bytes", "is_dynamic", "item", "length", "name")

    def __init__(
        self,
        name: str,
        encode: Encode,
        decode: Decode,
        head_bytes: int = WORD_BYTES,
        is_dynamic: bool = False,
        components: tuple[Codec, ...] = (),
        item: Codec | None = None,
        length: int | None = None,
    ) -> None:
        self.name = name
        """Canonical name, as in signatures."""
        self.encode = encode
        """Encode a value. Raises `AbiError`."""
        self.decode = decode
        """Decode the value at an offset. Raises `AbiError`."""
        self.head_bytes = head_bytes
        """Bytes in the head of a tuple: the value of a static type, or the offset of a dynamic one."""
        self.is_dynamic = is_dynamic
        self.components = components
        """Types of a tuple."""
        self.item = item
        """Type of the items of an array."""
        self.length = length
        """Number of items of an array; None when it varies."""

    def __repr__(self) -> str:
        return f"Codec({self.name!r})"


# --- addresses ----------------------------------------------------------------------------------


@lru_cache(65536)
def checksum_address(address: bytes) -> str:
    """Return an address as text with the mixed-case checksum of EIP-55."""
    digits = address.hex()
    digest = keccak256(digits.encode()).hex()
    return "0x" + "".join(
        digit.upper() if int(check, 16) >= 8 else digit for digit, check in zip(digits, digest, strict=False)
    )


def address_bytes(value: object) -> bytes:
    """Return the 20 bytes of an address: text, bytes, or an object with an `address`."""
    if isinstance(value, str):
        return _address_of_text(str(value))
    if isinstance(value, bytes | bytearray) and len(value) == 20:
        return bytes(value)
    inner = getattr(value, "address", None)
    if inner is None:
        raise AbiError(f"{_shown(value)} is not an address")
    return address_bytes(inner)


@lru_cache(65536)
def _address_of_text(text: str) -> bytes:
    try:
        found = bytes.fromhex(text[2:]) if text[:2] in ("0x", "0X") else b""
    except ValueError:
        found = b""
    if len(found) != 20:
        raise AbiError(f"{_shown(text)} is not an address")
    return found


# --- values -------------------------------------------------------------------------------------


def _word(data: bytes, offset: int) -> bytes:
    word = data[offset : offset + WORD_BYTES]
    if len(word) != WORD_BYTES:
        raise AbiError(f"the data ends at byte {len(data)}, inside of the value at byte {offset}")
    return word


def _unsigned(name: str, bits: int) -> Codec:
    bound = 1 << bits

    def encode(value: Any) -> bytes:
        if type(value) is not int:
            value = _as_integer(value, name)
        if not 0 <= value < bound:
            raise AbiError(f"{value} is not a {name}")
        encoded: bytes = value.to_bytes(WORD_BYTES, "big")
        return encoded

    def decode(data: bytes, offset: int) -> int:
        value = int.from_bytes(_word(data, offset), "big")
        if value >= bound:
            raise AbiError(f"the value at byte {offset} is not a {name}")
        return value

    return Codec(name, encode, decode)


def _signed(name: str, bits: int) -> Codec:
    bound = 1 << (bits - 1)

    def encode(value: Any) -> bytes:
        if type(value) is not int:
            value = _as_integer(value, name)
        if not -bound <= value < bound:
            raise AbiError(f"{value} is not an {name}")
        encoded: bytes = value.to_bytes(WORD_BYTES, "big", signed=True)
        return encoded

    def decode(data: bytes, offset: int) -> int:
        value = int.from_bytes(_word(data, offset), "big", signed=True)
        if not -bound <= value < bound:
            raise AbiError(f"the value at byte {offset} is not an {name}")
        return value

    return Codec(name, encode, decode)


def _as_integer(value: object, name: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    raise AbiError(f"{_shown(value)} is not a number, which {name} needs")


def _encode_address(value: Any) -> bytes:
    return bytes(12) + address_bytes(value)


def _decode_address(data: bytes, offset: int) -> str:
    word = _word(data, offset)
    if any(word[:12]):
        raise AbiError(f"the value at byte {offset} is not an address")
    return checksum_address(word[12:])


def _encode_bool(value: Any) -> bytes:
    if not isinstance(value, bool):
        raise AbiError(f"{_shown(value)} is not True or False, which bool needs")
    return value.to_bytes(WORD_BYTES, "big")


def _decode_bool(data: bytes, offset: int) -> bool:
    value = int.from_bytes(_word(data, offset), "big")
    if value > 1:
        raise AbiError(f"the value at byte {offset} is not a bool")
    return value == 1


def _fixed_bytes(name: str, size: int) -> Codec:
    def encode(value: Any) -> bytes:
        raw = _raw(value, name)
        if len(raw) != size:
            raise AbiError(f"{_shown(value)} has {len(raw)} bytes; {name} needs {size}")
        return raw.ljust(WORD_BYTES, b"\0")

    def decode(data: bytes, offset: int) -> bytes:
        word = _word(data, offset)
        if any(word[size:]):
            raise AbiError(f"the value at byte {offset} is not a {name}")
        return word[:size]

    return Codec(name, encode, decode)


def _raw(value: Any, name: str) -> bytes:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if isinstance(value, str) and value[:2] in ("0x", "0X"):
        try:
            return bytes.fromhex(value[2:])
        except ValueError:
            pass
    raise AbiError(f"{_shown(value)} is not bytes, which {name} needs")


def _with_length(raw: bytes) -> bytes:
    return len(raw).to_bytes(WORD_BYTES, "big") + raw + _ZERO_PADDING[: -len(raw) % WORD_BYTES]


def _encode_bytes(value: Any) -> bytes:
    return _with_length(_raw(value, "bytes"))


def _decode_bytes(data: bytes, offset: int) -> bytes:
    size = int.from_bytes(_word(data, offset), "big")
    start = offset + WORD_BYTES
    if size > len(data) - start:
        raise AbiError(f"the data has {len(data)} bytes; the value at byte {offset} needs {size} more")
    return data[start : start + size]


def _encode_string(value: Any) -> bytes:
    if not isinstance(value, str):
        raise AbiError(f"{_shown(value)} is not text, which string needs")
    return _with_length(value.encode())


def _decode_string(data: bytes, offset: int) -> str:
    return _decode_bytes(data, offset).decode("utf-8", "surrogateescape")


# --- arrays and tuples --------------------------------------------------------------------------


def tuple_codec(items: Sequence[Codec], names: Sequence[str] = (), type_name: str = "") -> Codec:
    """Return the codec of a tuple. With names it takes dictionaries too, and decodes to a named tuple."""
    codecs = tuple(items)
    is_dynamic = any(one.is_dynamic for one in codecs)
    head_bytes = sum(one.head_bytes for one in codecs)
    encoders = tuple(one.encode for one in codecs)
    count = len(codecs)
    name = f"({','.join(one.name for one in codecs)})"
    make = _maker(names, type_name) if count and len(names) == count and any(names) else tuple
    is_plain = make is tuple

    def values_of(value: Any) -> Sequence[Any]:
        if isinstance(value, Mapping):
            missing = [one for one in names if one not in value]
            if missing or not names:
                raise AbiError(f"the value of {name} lacks {', '.join(missing) or 'names of its members'}")
            return [value[one] for one in names]
        if isinstance(value, str | bytes) or not isinstance(value, Sequence):
            raise AbiError(f"{_shown(value)} is not a tuple, which {name} needs")
        return value

    def encode(value: Any) -> bytes:
        values = value if type(value) in (tuple, list) else values_of(value)
        if len(values) != count:
            raise AbiError(f"{name} needs {count} values, not {len(values)}")
        if not is_dynamic:
            return b"".join([encoder(one) for encoder, one in zip(encoders, values, strict=True)])
        return _with_tails(codecs, values, head_bytes)

    steps = []
    position = 0
    for one in codecs:
        steps.append((one.decode, position, one.is_dynamic))
        position += one.head_bytes

    def decode(data: bytes, offset: int) -> Any:
        found = []
        for decoder, place, is_far in steps:
            at = offset + place
            found.append(decoder(data, _target(data, at, offset) if is_far else at))
        return tuple(found) if is_plain else make(found)

    head = WORD_BYTES if is_dynamic else head_bytes
    return Codec(name, encode, decode, head, is_dynamic, components=codecs)


def _maker(names: Sequence[str], type_name: str) -> Callable[[list[Any]], tuple[Any, ...]]:
    cleaned = [one if one.isidentifier() and not iskeyword(one) else "" for one in names]
    title = type_name if type_name.isidentifier() and not iskeyword(type_name) else "Result"
    made = namedtuple(title, cleaned, rename=True)  # type: ignore[misc]  # names come from the ABI
    return made._make


def _with_tails(codecs: Sequence[Codec], values: Sequence[Any], head_bytes: int) -> bytes:
    heads, tails, offset = [], [], head_bytes
    for codec, value in zip(codecs, values, strict=True):
        encoded = codec.encode(value)
        if codec.is_dynamic:
            heads.append(offset.to_bytes(WORD_BYTES, "big"))
            tails.append(encoded)
            offset += len(encoded)
        else:
            heads.append(encoded)
    return b"".join((*heads, *tails))


def _target(data: bytes, at: int, base: int) -> int:
    target = base + int.from_bytes(_word(data, at), "big")
    if target > len(data):
        raise AbiError(f"the offset at byte {at} points behind the data")
    return target


def array_codec(item: Codec, length: int | None) -> Codec:
    """Return the codec of an array; `length` None is an array of any length."""
    name = f"{item.name}[{'' if length is None else length}]"
    encode_item, decode_item, step = item.encode, item.decode, item.head_bytes

    def encode(value: Any) -> bytes:
        if isinstance(value, str | bytes) or not isinstance(value, Sequence):
            raise AbiError(f"{_shown(value)} is not a list, which {name} needs")
        if length is not None and len(value) != length:
            raise AbiError(f"{name} needs {length} values, not {len(value)}")
        if item.is_dynamic:
            content = _with_tails([item] * len(value), value, WORD_BYTES * len(value))
        else:
            content = b"".join([encode_item(one) for one in value])
        return content if length is not None else len(value).to_bytes(WORD_BYTES, "big") + content

    def decode(data: bytes, offset: int) -> list[Any]:
        count, base = length, offset
        if count is None:
            count = int.from_bytes(_word(data, offset), "big")
            base += WORD_BYTES
        if count * max(step, 1) > len(data) - base:
            raise AbiError(f"the data has {len(data)} bytes, too few for {count} items of {name}")
        if item.is_dynamic:
            places = range(base, base + count * WORD_BYTES, WORD_BYTES)
            return [decode_item(data, _target(data, place, base)) for place in places]
        return [decode_item(data, base + position * step) for position in range(count)]

    is_dynamic = length is None or item.is_dynamic
    head = WORD_BYTES if is_dynamic else step * (length or 0)
    return Codec(name, encode, decode, head, is_dynamic, item=item, length=length)


# --- names of types -----------------------------------------------------------------------------


@lru_cache(4096)
def parse_type(name: str) -> Codec:
    """Return the codec of a type by its name. Raises `AbiError` for a name that is not a type."""
    return _parsed(name.replace(" ", ""), 0)


def _parsed(name: str, depth: int) -> Codec:
    if depth > _MAX_DEPTH:
        raise AbiError(f"types nest more than {_MAX_DEPTH} deep")
    if (found := _ARRAY.match(name)) is not None:
        return array_codec(_parsed(found[1], depth + 1), int(found[2]) if found[2] else None)
    if name.startswith("(") and name.endswith(")"):
        return tuple_codec([_parsed(part, depth + 1) for part in split_types(name[1:-1])])
    return _elementary(name)


def _elementary(name: str) -> Codec:
    if (found := _NUMBER.match(name)) is not None:
        bits = int(found[2] or 256)
        if bits % 8 == 0 and 8 <= bits <= 256:
            return _unsigned(f"uint{bits}", bits) if found[1] == "uint" else _signed(f"int{bits}", bits)
    elif (found := _FIXED_BYTES.match(name)) is not None:
        if 1 <= int(found[1]) <= WORD_BYTES:
            return _fixed_bytes(name, int(found[1]))
    elif name in _SIMPLE:
        return _SIMPLE[name]
    raise AbiError(f"'{name}' is not an ABI type")


_SIMPLE = {
    "address": Codec("address", _encode_address, _decode_address),
    "bool": Codec("bool", _encode_bool, _decode_bool),
    "bytes": Codec("bytes", _encode_bytes, _decode_bytes, is_dynamic=True),
    "string": Codec("string", _encode_string, _decode_string, is_dynamic=True),
    "function": _fixed_bytes("function", 24),
}


def split_types(text: str) -> list[str]:
    """Split a list of types at its commas, except those inside of tuples."""
    parts, depth, start = [], 0, 0
    for position, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append(text[start:position])
            start = position + 1
        if depth < 0:
            raise AbiError(f"'{text}' closes a bracket that is not open")
    if depth:
        raise AbiError(f"'{text}' does not close all its brackets")
    return [*parts, text[start:]] if text else []


def declared_type(entry: Mapping[str, Any], depth: int = 0) -> Codec:
    """Return the codec of an ABI entry with `type` and, for tuples, `components`."""
    if depth > _MAX_DEPTH:
        raise AbiError(f"types nest more than {_MAX_DEPTH} deep")
    name = str(entry.get("type", ""))
    if not name.startswith("tuple"):
        return parse_type(name)
    components = entry.get("components") or ()
    title = str(entry.get("internalType", "")).partition("[")[0].rpartition(".")[2].removeprefix("struct ")
    codec = tuple_codec(
        [declared_type(one, depth + 1) for one in components], [str(one.get("name", "")) for one in components], title
    )
    for size in re.findall(r"\[(\d*)\]", name):
        codec = array_codec(codec, int(size) if size else None)
    return codec


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
