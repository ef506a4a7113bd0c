"""`ContractIndex`: the compiled contracts of a project, found by deployed code, creation code and error selector.

Reads the files of Hardhat, Foundry and solc (standard JSON, combined JSON) below one folder. Build information of
Hardhat and Foundry adds source maps and sources.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
from msgspec import Struct

from ophion.abi.interface import SELECTOR_BYTES, Abi, decode_error
from ophion.errors import AbiError, OphionError
from ophion.sdk.source_map import SourceFile, SourceLine, location_at

_KEY_BYTES = 8
"""Number of leading bytes of creation code that serve as lookup key."""
_MAX_FILES = 20_000
_MAX_FILE_BYTES = 512 * 1024 * 1024


class ArtifactsError(OphionError):
    """Raised when a folder of artifacts cannot be read."""


class CompiledContract(Struct, frozen=True):
    """A compiled contract."""

    name: str
    abi: Abi
    creation: bytes
    runtime: bytes
    immutables: tuple[tuple[int, int], ...]
    """Start and length of the values that the constructor writes into the deployed code."""
    source_map: str
    sources: Callable[[int], SourceFile | None]
    """Returns the source file for a file id of the source map."""

    def is_runtime(self, code: bytes) -> bool:
        """Return whether this is the deployed code of the contract, with any immutable values."""
        if len(code) != len(self.runtime):
            return False
        at = 0
        for start, length in self.immutables:
            if code[at:start] != self.runtime[at:start]:
                return False
            at = start + length
        return code[at:] == self.runtime[at:]

    def line_at(self, position: int) -> SourceLine | None:
        """Return the source line of a position in the deployed code; None if the source map has no line for it."""
        found = location_at(self.source_map, self.runtime, position) if self.source_map else None
        file = None if found is None else self.sources(found[1])
        return None if file is None or found is None else file.line_at(found[0])


class ContractIndex:
    """All contracts of a folder. An index without a folder has no contracts."""

    def __init__(self, contracts: list[CompiledContract] | None = None) -> None:
        self._by_length: dict[int, list[CompiledContract]] = {}
        self._by_start: dict[bytes, list[CompiledContract]] = {}
        self._by_error: dict[bytes, Abi] = {}
        self._found: dict[bytes, CompiledContract | None] = {}
        self.count = 0
        for one in contracts or ():
            self._add(one)

    def _add(self, one: CompiledContract) -> None:
        self.count += 1
        if one.runtime:
            self._by_length.setdefault(len(one.runtime), []).append(one)
        if one.creation:
            self._by_start.setdefault(one.creation[:_KEY_BYTES], []).append(one)
        for selector in one.abi.errors:
            self._by_error.setdefault(selector, one.abi)

    def deployed(self, code: bytes) -> CompiledContract | None:
        """Return the contract with this deployed code; None if the code is unknown."""
        if code not in self._found:
            fitting = (one for one in self._by_length.get(len(code), ()) if one.is_runtime(code))
            # prefer a contract with a source map, because build information lists imported contracts without one
            self._found[code] = max(fitting, key=lambda one: bool(one.source_map), default=None)
        return self._found[code]

    def created(self, init_code: bytes) -> CompiledContract | None:
        """Return the contract that this creation code deploys; None if the code is unknown."""
        fitting = [one for one in self._by_start.get(init_code[:_KEY_BYTES], ()) if init_code.startswith(one.creation)]
        return max(fitting, key=lambda one: len(one.creation), default=None)

    def reason(self, output: bytes) -> str | None:
        """Return a decoded custom error; None if the error is unknown."""
        abi = self._by_error.get(output[:SELECTOR_BYTES])
        return None if abi is None else str(decode_error(output, (abi,)))


# --- reading -------------------------------------------------------------------------------------


def artifact_files(folder: Path) -> list[Path]:
    """Return the JSON files below a folder."""
    if not folder.is_dir():
        raise ArtifactsError(f"{folder} is not a folder. Compile the contracts first, or name another folder.")
    found = sorted(path for path in folder.rglob("*.json") if not path.name.endswith(".dbg.json"))
    if len(found) > _MAX_FILES:
        raise ArtifactsError(f"{folder} has more than {_MAX_FILES} JSON files. Name the folder of the artifacts.")
    return found


def load_index(folder: Path) -> ContractIndex:
    """Read all artifacts of a folder. Raises `ArtifactsError`, which names the file that cannot be read."""
    reader = _Reader(folder)
    for path in artifact_files(folder):
        reader.read(path)
    return ContractIndex(reader.contracts())


class _Reader:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._found: list[CompiledContract] = []
        self._foundry_paths: dict[int, str] = {}
        self._files: dict[str, SourceFile | None] = {}

    def contracts(self) -> list[CompiledContract]:
        return self._found

    def read(self, path: Path) -> None:
        try:
            if path.stat().st_size > _MAX_FILE_BYTES:
                raise ArtifactsError(f"{path}: larger than {_MAX_FILE_BYTES >> 20} MiB")
            document = orjson.loads(path.read_bytes())
        except OSError as error:
            raise ArtifactsError(f"{path}: {error.strerror}") from None
        except orjson.JSONDecodeError as error:
            raise ArtifactsError(f"{path} is not JSON: {error}. Compile the contracts again.") from None
        try:
            for one in self._contracts(document, path):
                one.abi.check()
                self._found.append(one)
        except (AbiError, AttributeError, KeyError, TypeError, ValueError) as error:
            raise ArtifactsError(f"{path} is not an artifact of Hardhat, Foundry or solc: {error}") from None

    def _contracts(self, document: Any, path: Path) -> Iterator[CompiledContract]:
        if not isinstance(document, dict):
            return
        if isinstance(document.get("abi"), list):
            yield self._artifact(document, path.stem)
            return
        output, given = document, document.get("input") or {}
        if isinstance(document.get("output"), dict):
            output = document["output"]
        if not isinstance(output.get("contracts"), dict):
            return
        contents = {name: one.get("content") for name, one in (given.get("sources") or {}).items()}
        paths = {
            one["id"]: name for name, one in (output.get("sources") or {}).items() if isinstance(one.get("id"), int)
        }
        paths.update(enumerate(output.get("sourceList") or ()))
        sources = self._numbered(paths, contents)
        for name, one in output["contracts"].items():
            if isinstance(one.get("abi"), list | str):
                yield _combined(name.rpartition(":")[2], one, sources)
                continue
            for contract, compiled in one.items():
                if isinstance(compiled.get("abi"), list):
                    yield _standard(contract, compiled, compiled.get("evm") or {}, sources)

    def _artifact(self, document: Mapping[str, Any], stem: str) -> CompiledContract:
        """Read an artifact of one contract: Hardhat's, Foundry's or Truffle's."""
        metadata = document.get("metadata")
        settings = (metadata.get("settings") or {}) if isinstance(metadata, dict) else {}
        target = settings.get("compilationTarget") or {}
        if isinstance(document.get("id"), int) and target:
            self._foundry_paths[document["id"]] = next(iter(target))
        name = document.get("contractName") or next(iter(target.values()), stem)
        return _standard(name, document, document, self._numbered(self._foundry_paths, {}))

    def _numbered(
        self, paths: Mapping[int, str], contents: Mapping[str, str | None]
    ) -> Callable[[int], SourceFile | None]:
        def source(number: int) -> SourceFile | None:
            name = paths.get(number)
            return None if name is None else self._source(name, contents.get(name))

        return source

    def _source(self, name: str, content: str | None) -> SourceFile | None:
        if content is not None:
            return SourceFile(name, content.encode())
        if name not in self._files:
            self._files[name] = None
            for folder in (self._folder, *self._folder.resolve().parents):
                path = folder / name
                if path.is_file():
                    self._files[name] = SourceFile(name, path.read_bytes())
                    break
        return self._files[name]


def _standard(
    name: str, document: Mapping[str, Any], evm: Mapping[str, Any], sources: Callable[[int], SourceFile | None]
) -> CompiledContract:
    creation, runtime = evm.get("bytecode") or "", evm.get("deployedBytecode") or ""
    source_map, references = document.get("deployedSourceMap") or "", document.get("immutableReferences") or {}
    if isinstance(runtime, dict):
        source_map = runtime.get("sourceMap") or source_map
        references = runtime.get("immutableReferences") or references
    places = sorted((one["start"], one["length"]) for several in references.values() for one in several)
    return CompiledContract(
        name=str(name),
        abi=Abi.of(document["abi"]),
        creation=_code(creation),
        runtime=_code(runtime),
        immutables=tuple(places),
        source_map=source_map,
        sources=sources,
    )


def _combined(name: str, document: Mapping[str, Any], sources: Callable[[int], SourceFile | None]) -> CompiledContract:
    abi = document["abi"]
    return CompiledContract(
        name=name,
        abi=Abi.of(orjson.loads(abi) if isinstance(abi, str) else abi),
        creation=_code(document.get("bin") or ""),
        runtime=_code(document.get("bin-runtime") or ""),
        immutables=(),
        source_map=document.get("srcmap-runtime") or "",
        sources=sources,
    )


def _code(value: Any) -> bytes:
    """Return the bytecode; empty if its libraries are not linked."""
    text = value.get("object", "") if isinstance(value, dict) else value
    try:
        return bytes.fromhex(str(text).removeprefix("0x"))
    except ValueError:
        return b""
