"""Compiled contracts: the output of solc, Vyper, Foundry, Hardhat, Truffle and Brownie.

>>> artifact = Artifact.of({"contractName": "Empty", "abi": [], "bytecode": "0x00"})
>>> artifact.name, artifact.bytecode
('Empty', b'\\x00')
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
from msgspec import Struct

from ophion.abi.interface import Abi
from ophion.errors import OphionError


class ArtifactError(OphionError):
    """Raised when the file or object of a compiled contract is missing, malformed, or lacks ABI or bytecode."""


class UnknownArtifact(ArtifactError, AttributeError, KeyError):
    """Raised when the folders of a project have no artifact with the requested name."""


class Artifact(Struct, frozen=True):
    """A compiled contract: name, ABI and bytecode."""

    name: str
    abi: Abi
    bytecode: bytes
    """Creation code without constructor arguments."""
    runtime: bytes = b""
    """Deployed code, in which immutable values are zero."""
    source_map: str = ""
    """Source map of the deployed code."""
    sources: tuple[str, ...] = ()
    """Paths of the sources, in the order of the source map."""

    @classmethod
    def of(cls, source: Artifact | Mapping[str, Any] | str | os.PathLike[str]) -> Artifact:
        """Return an artifact from an object or from the path of a JSON file."""
        if isinstance(source, Artifact):
            return source
        if isinstance(source, Mapping):
            return _read(source, "Contract")
        path = Path(source)
        try:
            document = orjson.loads(path.read_bytes())
        except OSError as error:
            raise ArtifactError(f"{path}: {error.strerror}. Compile the contract first.") from None
        except orjson.JSONDecodeError as error:
            raise ArtifactError(f"{path} is not JSON: {error}") from None
        if not isinstance(document, dict):
            raise ArtifactError(f"{path} is not an artifact: an object with 'abi' and 'bytecode' is expected")
        return _read(document, path.stem)


def _read(document: Mapping[str, Any], default_name: str) -> Artifact:
    if "abi" not in document:
        raise ArtifactError(f"{default_name} has no 'abi'. Known fields: {', '.join(sorted(document)) or 'none'}")
    evm = document.get("evm") or {}
    creation = document.get("bytecode") or evm.get("bytecode") or document.get("bin") or ""
    runtime = (
        document.get("deployedBytecode")
        or evm.get("deployedBytecode")
        or document.get("bytecode_runtime")
        or document.get("bin-runtime")
        or ""
    )
    name = str(document.get("contractName") or default_name)
    source_map = runtime.get("sourceMap", "") if isinstance(runtime, Mapping) else document.get("deployedSourceMap", "")
    return Artifact(
        name=name,
        abi=Abi.of(document["abi"]),
        bytecode=_code(creation, name),
        runtime=_code(runtime, name, is_required=False),
        source_map=str(source_map or ""),
    )


def _code(value: Any, name: str, is_required: bool = True) -> bytes:
    text = value.get("object", "") if isinstance(value, Mapping) else value
    if isinstance(text, bytes | bytearray):
        return bytes(text)
    digits = str(text).removeprefix("0x")
    try:
        return bytes.fromhex(digits)
    except ValueError:
        if not is_required:
            return b""
        raise ArtifactError(
            f"{name}: the bytecode is not hexadecimal. It may refer to libraries that are not linked."
        ) from None


_FOLDERS = ("out", "artifacts", "build/contracts", "build")
_NOT_ARTIFACTS = (".dbg.json", ".metadata.json")


class ArtifactFolder(Mapping[str, Artifact]):
    """Compiled contracts by contract name, from the files in some folders. A file is read when its contract is first
    used.
    """

    def __init__(self, folders: Iterable[str | os.PathLike[str]]) -> None:
        self._paths: dict[str, Path] = {}
        self._folders = [Path(folder) for folder in folders]
        for folder in self._folders:
            for path in sorted(folder.rglob("*.json")):
                if not path.name.endswith(_NOT_ARTIFACTS) and "build-info" not in path.parts:
                    self._paths.setdefault(path.stem, path)
        self._read: dict[str, Artifact] = {}

    @classmethod
    def of_project(cls, root: str | os.PathLike[str]) -> ArtifactFolder:
        """Return the artifacts in the output folders of Foundry, Hardhat, Truffle and Brownie."""
        found = [Path(root) / one for one in _FOLDERS]
        return cls([one for one in found if one.is_dir()])

    def __getitem__(self, name: str) -> Artifact:
        if name not in self._read:
            path = self._paths.get(name)
            if path is None:
                raise self.unknown(name)
            self._read[name] = Artifact.of(path)
        return self._read[name]

    def __getattr__(self, name: str) -> Artifact:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    def unknown(self, name: str) -> UnknownArtifact:
        """Return the error for a name without an artifact. The error lists the known artifacts and the searched
        folders.
        """
        known = ", ".join(sorted(self._paths)) or "none"
        folders = ", ".join(f"{one}{'' if one.is_dir() else ' (missing)'}" for one in self._folders)
        where = f"Folders: {folders}" if folders else f"None of the folders {', '.join(_FOLDERS)} exists"
        return UnknownArtifact(
            f"there is no artifact '{name}'. Artifacts: {known}. {where}. Compile the contract first."
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)
