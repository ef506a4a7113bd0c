"""`Pkcs11Signer`: a validator key in a hardware security module. The private key never leaves the module.

Needs the extra `ophion[pkcs11]`. A signature takes milliseconds, so callers sign in a thread.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from ophion.errors import KeyFileError, SignerUnavailable
from ophion.native.crypto import address_of, recover_address
from ophion.native.exceptions import NativeError
from ophion.primitives.types import Address, Hash32, Signature

_ORDER: Final = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
_SECP256K1_OID: Final = bytes.fromhex("06052b8104000a")
_POINT_PREFIX: Final = bytes.fromhex("044104")
"""Prefix of the DER octet string that holds an uncompressed point."""


class Pkcs11Key(Struct, frozen=True):
    """Location of a key in a security module."""

    library: Path
    """PKCS #11 library of the module."""
    slot: str
    """Number of the slot, or label of its token."""
    label: str
    """Label of the private key and its public key."""
    pin: str

    def __repr__(self) -> str:
        return f"Pkcs11Key({self.library}, slot {self.slot}, key {self.label})"


class Pkcs11Signer:
    """Signs digests with a key in a module. Thread-safe. A process can log in to a token only once, so each process
    uses one signer.
    """

    def __init__(self, place: Pkcs11Key) -> None:
        """Log in and find the key. Raises `KeyFileError`."""
        self._place = place
        self._lock = threading.Lock()
        self._session: Any = None
        self._private: Any = None
        pkcs11 = _pkcs11()
        try:
            self._log_in()
            self.public_key = self._read_public_key()
        except (pkcs11.PKCS11Error, RuntimeError) as error:
            self._forget()
            raise KeyFileError(f"{self._where}: {_reason(error)}.") from error
        except KeyFileError:
            self._forget()
            raise
        self.address: Address = address_of(self.public_key)

    def sign(self, digest: Hash32) -> Signature:
        """Sign a 32-byte digest. Returns r || s || v, with v 0 or 1 and s in the lower half of the order.

        Raises `SignerUnavailable`.
        """
        pkcs11 = _pkcs11()
        with self._lock:
            try:
                if self._private is None:
                    self._log_in()
                raw = self._private.sign(digest, mechanism=pkcs11.Mechanism.ECDSA)
            except (pkcs11.PKCS11Error, RuntimeError) as error:
                self._forget()
                raise SignerUnavailable(f"{self._where}: {_reason(error)}") from error
        return self._with_recovery(digest, raw)

    def close(self) -> None:
        """Log out of the security module."""
        with self._lock:
            self._forget()

    @property
    def _where(self) -> str:
        place = self._place
        return f"Security module {place.library}, slot {place.slot}, key {place.label}"

    def _log_in(self) -> None:
        pkcs11, place = _pkcs11(), self._place
        library = pkcs11.lib(str(place.library))
        self._session = self._token(library).open(user_pin=place.pin)
        self._private = self._only_object(pkcs11.ObjectClass.PRIVATE_KEY, "private")

    def _token(self, library: Any) -> Any:
        pkcs11, chosen = _pkcs11(), self._place.slot
        slots = list(library.get_slots(token_present=True))
        for slot in slots:
            token = slot.get_token()
            if chosen in (str(slot.slot_id), token.label.strip()):
                return token
        known = ", ".join(f"{slot.slot_id} ({slot.get_token().label.strip()})" for slot in slots) or "none"
        raise pkcs11.NoSuchToken(f"no token in this slot; slots with a token: {known}")

    def _only_object(self, kind: Any, name: str) -> Any:
        """Return the only object of a kind with the label of the key. Raises `KeyFileError`."""
        attribute = _pkcs11().Attribute
        found = list(self._session.get_objects({attribute.CLASS: kind, attribute.LABEL: self._place.label}))
        if len(found) != 1:
            raise KeyFileError(f"{self._where}: the token has {len(found) or 'no'} {name} keys with this label.")
        return found[0]

    def _read_public_key(self) -> bytes:
        pkcs11 = _pkcs11()
        key = self._only_object(pkcs11.ObjectClass.PUBLIC_KEY, "public")
        curve, point = key[pkcs11.Attribute.EC_PARAMS], key[pkcs11.Attribute.EC_POINT]
        if curve != _SECP256K1_OID:
            raise KeyFileError(f"{self._where}: the key is not on the curve secp256k1.")
        if not point.startswith(_POINT_PREFIX) or len(point) != len(_POINT_PREFIX) + 64:
            raise KeyFileError(f"{self._where}: the public key is not an uncompressed point.")
        return bytes(point[len(_POINT_PREFIX) :])

    def _with_recovery(self, digest: Hash32, raw: bytes) -> Signature:
        s = int.from_bytes(raw[32:])
        compact = raw[:32] + min(s, _ORDER - s).to_bytes(32)
        for parity in (b"\0", b"\1"):
            try:
                if recover_address(digest, compact + parity) == self.address:
                    return compact + parity
            except NativeError:
                continue
        raise SignerUnavailable(f"{self._where}: the signature does not match the public key")

    def _forget(self) -> None:
        session, self._session, self._private = self._session, None, None
        if session is not None:
            try:
                session.close()
            except (_pkcs11().PKCS11Error, RuntimeError):
                return

    def __repr__(self) -> str:
        return f"Pkcs11Signer(address=0x{self.address.hex()})"


def _pkcs11() -> Any:
    try:
        import pkcs11
        import pkcs11.exceptions
    except ImportError as error:
        raise KeyFileError(
            "--security-module=pkcs11 needs the package python-pkcs11: install ophion[pkcs11]."
        ) from error
    return pkcs11


def _reason(error: Exception) -> str:
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
