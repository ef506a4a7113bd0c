"""Completion scripts of a link named anvil."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from ophion.cli.anvil.completions import completions


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_has_the_options(shell: str) -> None:
    script = completions([shell])
    assert "block-time" in script
    assert "anvil" in script


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_completes_an_option() -> None:
    program = f'{completions(["bash"])}\nCOMP_WORDS=(anvil --no-mini) COMP_CWORD=1; _anvil; echo "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "--no-mining\n"
