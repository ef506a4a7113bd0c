"""Options of a security module: the node finds mistakes before it starts any service."""

from __future__ import annotations

from pathlib import Path

from ophion.node.security_module import SecurityModule, SecurityModuleConfig
from ophion.runtime.options import problems_of


def test_without_a_module_nothing_is_opened() -> None:
    assert SecurityModuleConfig().open() is None
    assert problems_of(SecurityModuleConfig()) == []


def test_options_of_a_module_need_the_module() -> None:
    (problem,) = problems_of(SecurityModuleConfig(slot="1", key="validator"))
    assert problem == "--pkcs11-slot, --pkcs11-key need --security-module=pkcs11."


def test_a_module_needs_library_slot_key_and_pin(tmp_path: Path) -> None:
    problems = problems_of(SecurityModuleConfig(module=SecurityModule.PKCS11, slot="1"))
    assert "--security-module=pkcs11 needs --pkcs11-library, --pkcs11-key, --pkcs11-pin-file." in problems
    empty = problems_of(SecurityModuleConfig(module=SecurityModule.PKCS11, slot="", key=""))
    assert "--security-module=pkcs11 needs --pkcs11-library, --pkcs11-slot, --pkcs11-key, --pkcs11-pin-file." in empty
    wrong = SecurityModuleConfig(
        module=SecurityModule.PKCS11, library=tmp_path / "no.so", slot="1", key="k", pin_file=tmp_path / "no-pin"
    )
    text = " ".join(problems_of(wrong))
    assert "no.so does not exist" in text
    assert "Unable to read the password file" in text
