"""Node records (EIP-778), local and remote (networking.md 2.4).

The sequence number of the local record increases with every change. The record is stored in a file, so that the number
does not decrease after a restart. Without the file, the number comes from the clock.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import ipaddress
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from ophion.native import wire
from ophion.native.crypto import PrivateKey
from ophion.native.wire import WireError
from ophion.primitives import rlp
from ophion.primitives.rlp import RlpError
from ophion.runtime.clock import Clock

log = logging.getLogger(__name__)

NAME: Final = "node-record"
_PREFIX: Final = "enr:"
_IDENTITY: Final = (b"id", b"secp256k1")


class Record(Struct, frozen=True):
    """A decoded node record with a valid signature."""

    node_id: bytes
    seq: int
    pairs: Mapping[bytes, bytes]
    """Keys of the record, with RLP-encoded values."""

    @classmethod
    def read(cls, encoded: bytes) -> Record:
        """Decode and verify a record; raises `WireError`."""
        node_id, seq, pairs = wire.read_record(encoded)
        return cls(node_id, seq, dict(pairs))

    @property
    def tcp_port(self) -> int | None:
        """TCP port of the node, or None if the record has no valid port."""
        try:
            port = rlp.decode_int(rlp.decode(self.pairs[b"tcp"]))
        except (KeyError, RlpError):
            return None
        return port if 0 < port <= 0xFFFF else None

    @property
    def chain(self) -> rlp.Item | None:
        """Fork identifier: the first element of the `eth` entry, or None if the record has no such entry."""
        try:
            entry = rlp.decode(self.pairs[b"eth"])
        except (KeyError, RlpError):
            return None
        return entry[0] if isinstance(entry, list) and entry else None


class LocalRecord:
    """The record of this node. Every change increases the sequence number and signs the record again."""

    def __init__(self, key: PrivateKey, clock: Clock, path: Path | None = None) -> None:
        self._key = key
        self._clock = clock
        self._path = path
        self.encoded = b""
        """RLP of the signed record; empty before the first `update`."""
        self.seq = 0
        self._pairs: dict[bytes, bytes] = {}
        self._restore()

    @property
    def text(self) -> str:
        """The record as text that begins with `enr:`."""
        return _PREFIX + base64.urlsafe_b64encode(self.encoded).rstrip(b"=").decode()

    def update(self, ip: str, tcp_port: int, udp_port: int, chain: bytes | None) -> None:
        """Set the contents of the record. `chain` is the RLP of the `eth` entry."""
        address = ipaddress.ip_address(ip)
        pairs = {b"tcp": rlp.encode_int(tcp_port), b"udp": rlp.encode_int(udp_port)}
        if not address.is_unspecified:
            pairs[b"ip" if address.version == 4 else b"ip6"] = rlp.encode_bytes(address.packed)
        if chain is not None:
            pairs[b"eth"] = chain
        if pairs == self._pairs:
            return
        self._pairs = pairs
        self.seq = max(self.seq + 1, int(self._clock.now() * 1000))
        self.encoded = wire.sign_record(self._key.secret(), self.seq, list(pairs.items()))
        self._save()

    def _restore(self) -> None:
        if self._path is None:
            return
        try:
            text = self._path.read_text().strip().removeprefix(_PREFIX)
            encoded = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
            record = Record.read(encoded)
        except (OSError, ValueError, binascii.Error, WireError):
            return  # without a readable record file, the next sequence number comes from the clock
        if record.node_id == self._key.public_key:
            self.encoded, self.seq = encoded, record.seq
            self._pairs = {name: value for name, value in record.pairs.items() if name not in _IDENTITY}

    def _save(self) -> None:
        if self._path is None:
            return
        temporary = self._path.with_name(self._path.name + ".new")
        try:
            temporary.write_text(self.text + "\n")
            temporary.replace(self._path)
        except OSError as error:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            log.warning("cannot write node record path=%s error=%s", self._path, error.strerror)
