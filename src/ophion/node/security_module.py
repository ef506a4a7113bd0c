"""Options of a hardware security module that holds the validator key."""

from __future__ import annotations

import os
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from ophion.errors import KeyFileError
from ophion.node.node_key_file import read_password_file
from ophion.runtime.options import Options, option

if TYPE_CHECKING:
    from ophion.wallet.pkcs11_signer import Pkcs11Signer


class SecurityModule(Enum):
    """Location of the validator key: a file or a security module."""

    LOCALFILE = "localfile"
    PKCS11 = "pkcs11"


class SecurityModuleConfig(Options):
    """Security module: the PKCS #11 module that holds the validator key."""

    module: SecurityModule = option(
        "--security-module",
        default=SecurityModule.LOCALFILE,
        help="Where the validator key is: in a file, or in a hardware module with a PKCS #11 library.",
    )
    library: Path | None = option(
        "--pkcs11-library", default=None, help="PKCS #11 library of the module, e.g. libsofthsm2.so."
    )
    slot: str | None = option(
        "--pkcs11-slot", default=None, metavar="SLOT", help="Number of the slot, or label of its token."
    )
    key: str | None = option(
        "--pkcs11-key",
        default=None,
        metavar="LABEL",
        help="Label of the validator key (secp256k1), of both its private and its public object.",
    )
    pin_file: Path | None = option("--pkcs11-pin-file", default=None, help="File whose first line is the user PIN.")

    @property
    def is_used(self) -> bool:
        """Whether the validator key is in a security module."""
        return self.module is SecurityModule.PKCS11

    def problems(self) -> Iterator[str]:
        given = {
            "--pkcs11-library": self.library,
            "--pkcs11-slot": self.slot,
            "--pkcs11-key": self.key,
            "--pkcs11-pin-file": self.pin_file,
        }
        if not self.is_used:
            unused = [name for name, value in given.items() if value is not None]
            if unused:
                yield f"{', '.join(unused)} need{'s' * (len(unused) == 1)} --security-module=pkcs11."
            return
        missing = [name for name, value in given.items() if value in (None, "")]
        if missing:
            yield f"--security-module=pkcs11 needs {', '.join(missing)}."
        # lazy import: nodes without a security module start faster
        from importlib.util import find_spec

        if find_spec("pkcs11") is None:
            yield "--security-module=pkcs11 needs the package python-pkcs11: install ophion[pkcs11]."
        if self.library is not None and not os.path.isfile(self.library):
            problem = "is not a file" if os.path.exists(self.library) else "does not exist"
            yield f"The PKCS #11 library {self.library} {problem}."
        if self.pin_file is not None:
            try:
                read_password_file(self.pin_file)
            except KeyFileError as error:
                yield str(error)

    def open(self) -> Pkcs11Signer | None:
        """Log in to the security module. Returns None if the validator key is in a file. Raises `KeyFileError`."""
        if self.library is None or self.slot is None or self.key is None or self.pin_file is None or not self.is_used:
            return None
        # lazy import: only validators with a security module need this module
        from ophion.wallet.pkcs11_signer import Pkcs11Key, Pkcs11Signer

        return Pkcs11Signer(Pkcs11Key(self.library, self.slot, self.key, read_password_file(self.pin_file)))
