"""The manifest of an export: files with block ranges, row counts and checksums."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from ophion.data.dataset_types import SCHEMA_VERSION
from ophion.data.export_target import Target
from ophion.errors import CommandError

MANIFEST_NAME: Final = "_manifest.json"
"""Name of the manifest file. Query engines skip names that begin with an underscore."""


_NAME: Final = re.compile(r"[\w$]+", re.ASCII)
_PATH: Final = re.compile(r"[\w$]+/from=\d+/part-\d+-\d+\.[a-z]+", re.ASCII)


class FileEntry(Struct, frozen=True):
    """One finished export file."""

    path: str
    first: int
    last: int
    last_hash: str
    """Hash of block `last`, which shows whether a reorganisation has replaced the blocks."""
    rows: int
    size: int
    crc32: str = ""
    """CRC-32 of the content; empty in manifests of an earlier version, whose files are written again."""


class DatasetEntry(Struct):
    """The files of one dataset, and the settings that all these files share."""

    settings: dict[str, Any]
    files: list[FileEntry] = field(default_factory=list)

    def missing(self, first: int, last: int) -> list[tuple[int, int]]:
        """Return the ranges of blocks for which no file exists."""
        gaps, start = [], first
        for file in sorted(self.files, key=lambda file: file.first):
            if file.first > last:
                break
            if file.first > start:
                gaps.append((start, file.first - 1))
            start = max(start, file.last + 1)
        if start <= last:
            gaps.append((start, last))
        return gaps


class Manifest(Struct):
    """The manifest of one export target: all datasets with their files."""

    chain_id: int
    genesis: str
    schema_version: int = SCHEMA_VERSION
    datasets: dict[str, DatasetEntry] = field(default_factory=dict)

    @classmethod
    def load(cls, target: Target, chain_id: int, genesis: str) -> Manifest:
        """Read the manifest of a target, or start a new manifest. Raises if the manifest belongs to another chain or
        version.
        """
        content = target.read(MANIFEST_NAME)
        if content is None:
            return cls(chain_id, genesis)
        place = target.location(MANIFEST_NAME)
        try:
            found = msgspec.json.decode(content, type=cls)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise CommandError(f"{place} is damaged: {error}. Move it away or choose another --to.") from error
        for name, entry in found.datasets.items():
            for file in entry.files:
                # refuse any path outside of the dataset's folder, because an export deletes listed files that are
                # damaged
                if not (_NAME.fullmatch(name) and _PATH.fullmatch(file.path) and file.path.startswith(f"{name}/")):
                    raise CommandError(
                        f"{place} is damaged: it lists the file {file.path!r}. Move it away or choose another --to."
                    )
        if (found.chain_id, found.genesis) != (chain_id, genesis):
            raise CommandError(
                f"{place} belongs to another chain (chain id {found.chain_id}, genesis {found.genesis}); this one has"
                f" chain id {chain_id} and genesis {genesis}. Choose another --to."
            )
        if found.schema_version != SCHEMA_VERSION:
            raise CommandError(
                f"{place} has schema version {found.schema_version}; this Ophion writes {SCHEMA_VERSION}."
                " Choose another --to."
            )
        return found

    def dataset(self, name: str, settings: dict[str, Any]) -> DatasetEntry:
        """Return the entry of a dataset. Raises if the files of the dataset were written with other settings."""
        entry = self.datasets.setdefault(name, DatasetEntry(settings))
        if not entry.files:
            entry.settings = settings
        changed = sorted(key for key in settings if entry.settings.get(key) != settings[key])
        if changed:
            raise CommandError(
                f"The files of {name} were exported with another value of {', '.join(changed)}."
                " Use the same options, or another --to."
            )
        return entry

    def save(self, target: Target) -> None:
        """Write the manifest to the target."""
        for entry in self.datasets.values():
            entry.files.sort(key=lambda file: file.first)
        content = msgspec.json.format(msgspec.json.encode(self), indent=1)

        def fill(file: Any) -> None:
            file.write(content)

        target.write(MANIFEST_NAME, fill)
