"""Loads the standalone verifier of examples/proof."""

from __future__ import annotations

import importlib.util

import pytest

from tests.conftest import ROOT

pytest.importorskip("eth_keys", reason="the standalone verifier needs eth-keys")
_spec = importlib.util.spec_from_file_location("standalone_verify", ROOT / "examples/proof/verify.py")
assert _spec is not None
assert _spec.loader is not None
_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)

verify = _module.verify
Refused = _module.Refused
