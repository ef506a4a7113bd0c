"""Tests artifacts of different compilers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ophion.abi.artifact import Artifact, ArtifactError, ArtifactFolder, UnknownArtifact
from tests.unit.sdk.contracts import FOLDER, TOKEN


@pytest.mark.parametrize(
    "document",
    [
        {"abi": [], "bytecode": "0x6001"},
        {"abi": [], "bytecode": {"object": "0x6001"}},
        {"abi": [], "evm": {"bytecode": {"object": "6001"}}},
        {"abi": [], "bin": "6001"},
        {"abi": [], "bytecode": b"\x60\x01"},
    ],
)
def test_reads_the_formats_of_compilers(document: dict[str, Any]) -> None:
    assert Artifact.of(document).bytecode == b"\x60\x01"


def test_reads_files() -> None:
    assert Artifact.of(TOKEN).name == "Token"
    assert set(ArtifactFolder([FOLDER])) == {"Token", "Vault"}
    assert ArtifactFolder([FOLDER]).Token.name == "Token"
    for use in (lambda: ArtifactFolder([FOLDER]).Missing, lambda: ArtifactFolder([FOLDER])["Missing"]):
        with pytest.raises(UnknownArtifact, match="Artifacts: Token, Vault"):
            use()
    assert "Missing" not in ArtifactFolder([FOLDER])
    assert not hasattr(ArtifactFolder([FOLDER]), "Missing")


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnknownArtifact, match=r"Artifacts: none. Folders: .*nowhere \(missing\)"):
        _ = ArtifactFolder([tmp_path / "nowhere"])["Token"]
    with pytest.raises(UnknownArtifact, match="None of the folders out, artifacts"):
        _ = ArtifactFolder.of_project(tmp_path)["Token"]


def test_says_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="Compile the contract first"):
        Artifact.of(tmp_path / "Missing.json")
    with pytest.raises(ArtifactError, match="no 'abi'"):
        Artifact.of({"bytecode": "0x"})
    with pytest.raises(ArtifactError, match="libraries that are not linked"):
        Artifact.of({"abi": [], "bytecode": "0x60__$library$__"})
