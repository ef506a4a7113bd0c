"""Encoders and decoders of ABI values, one object per type.

A codec is compiled once: `encode` and `decode` are closures without a lookup of types. Decoding is strict: dirty
padding, offsets outside of the data and impossible lengths raise `AbiError`.
"""

from __future__ import annotations

import re
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from keyword import iskeyword
from operator import index
from typing import Any

from ophion.abi.addresses import address_bytes, checksum_address, shortened
from ophion.errors import AbiError

WORD_BYTES = 32
_ZERO_PADDING = bytes(WORD_BYTES)
_NUMBER = re.compile(r"^(u?int)(\d*)$")
_FIXED_BYTES = re.compile(r"^bytes(\d+)$")

Encode = Callable[[Any], bytes]
Decode = Callable[[bytes, int], Any]


class Codec:
    """Encoder and decoder of one ABI type."""

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
        """Canonical name of the type, as in function signatures."""
        self.encode = encode
        """Encode a value. Raises `AbiError`."""
        self.decode = decode
        """Decode the value at an offset. Raises `AbiError`."""
        self.head_bytes = head_bytes
        """Number of bytes of the value in the head of a tuple. For a dynamic type, the head holds an offset."""
        self.is_dynamic = is_dynamic
        self.components = components
        """Types of the items of a tuple."""
        self.item = item
        """Type of the items of an array."""
        self.length = length
        """Number of items of an array; None for a dynamic length."""

    def __repr__(self) -> str:
        return f"Codec({self.name!r})"


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
            raise AbiError(f"{shortened(value)} is not a {name}")
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
            raise AbiError(f"{shortened(value)} is not an {name}")
        encoded: bytes = value.to_bytes(WORD_BYTES, "big", signed=True)
        return encoded

    def decode(data: bytes, offset: int) -> int:
        value = int.from_bytes(_word(data, offset), "big", signed=True)
        if not -bound <= value < bound:
            raise AbiError(f"the value at byte {offset} is not an {name}")
        return value

    return Codec(name, encode, decode)


def _as_integer(value: Any, name: str) -> int:
    if not isinstance(value, bool):
        try:
            return index(value)
        except TypeError:
            pass
    raise AbiError(f"{shortened(value)} is not a number, which {name} needs")


def _encode_address(value: Any) -> bytes:
    return bytes(12) + address_bytes(value)


def _decode_raw_address(data: bytes, offset: int) -> bytes:
    word = _word(data, offset)
    if any(word[:12]):
        raise AbiError(f"the value at byte {offset} is not an address")
    return word[12:]


def _decode_address(data: bytes, offset: int) -> str:
    return checksum_address(_decode_raw_address(data, offset))


def _encode_bool(value: Any) -> bytes:
    if not isinstance(value, bool):
        raise AbiError(f"{shortened(value)} is not True or False, which bool needs")
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
            raise AbiError(f"{shortened(value)} has {len(raw)} bytes; {name} needs {size}")
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
    raise AbiError(f"{shortened(value)} is not bytes, which {name} needs")


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
        raise AbiError(f"{shortened(value)} is not text, which string needs")
    try:
        return _with_length(value.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        raise AbiError(f"{shortened(value)} has characters that UTF-8 cannot encode") from None


def _decode_string(data: bytes, offset: int) -> str:
    return _decode_bytes(data, offset).decode("utf-8", "surrogateescape")


def elementary_codec(name: str, has_raw_addresses: bool) -> Codec:
    """Return the codec of a type that is neither an array nor a tuple. Raises `AbiError` for any other name."""
    if (found := _NUMBER.match(name)) is not None:
        bits = int(found[2] or 256)
        if bits % 8 == 0 and 8 <= bits <= 256:
            return _unsigned(f"uint{bits}", bits) if found[1] == "uint" else _signed(f"int{bits}", bits)
    elif (found := _FIXED_BYTES.match(name)) is not None:
        if 1 <= int(found[1]) <= WORD_BYTES:
            return _fixed_bytes(name, int(found[1]))
    elif name == "address" and has_raw_addresses:
        return _RAW_ADDRESS
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
_RAW_ADDRESS = Codec("address", _encode_address, _decode_raw_address)


# --- arrays and tuples --------------------------------------------------------------------------


def tuple_codec(items: Sequence[Codec], names: Sequence[str] = (), type_name: str = "") -> Codec:
    """Return the codec of a tuple. With names, the codec also encodes dictionaries, and decodes to a named tuple."""
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
            raise AbiError(f"{shortened(value)} is not a tuple, which {name} needs")
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
    made = namedtuple(title, cleaned, rename=True)  # type: ignore[misc]  # the names come from the ABI
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
    """Return the codec of an array. With `length` None, the array has a dynamic length."""
    name = f"{item.name}[{'' if length is None else length}]"
    encode_item, decode_item, step = item.encode, item.decode, item.head_bytes

    def encode(value: Any) -> bytes:
        if isinstance(value, str | bytes) or not isinstance(value, Sequence):
            raise AbiError(f"{shortened(value)} is not a list, which {name} needs")
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
