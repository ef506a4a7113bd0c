"""Compiled contracts for tests. The sources are beside the artifacts."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parents[2] / "data" / "contracts"
TOKEN = FOLDER / "Token.json"
VAULT = FOLDER / "Vault.json"
