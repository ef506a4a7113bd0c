"""The examples of docs/python.md run in order."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ophion.testing.validator_network import ValidatorNetwork
from tests.conftest import ROOT
from tests.unit.sdk.contracts import TOKEN


def test_examples_of_the_page() -> None:
    pytest.importorskip("web3", reason="one example uses web3.py")
    text = (ROOT / "docs" / "python.md").read_text()
    examples = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(examples) >= 8
    names: dict[str, Any] = {"TOKEN": TOKEN}
    for example in examples:
        exec(compile(example, "docs/python.md", "exec"), names)
    tests = [test for name, test in names.items() if name.startswith("test_")]
    assert len(tests) >= 3
    for test in tests:
        test(ValidatorNetwork)
    names["chain"].close()
