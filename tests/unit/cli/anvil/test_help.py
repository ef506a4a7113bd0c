"""Help and documentation of Anvil's options, made from their table."""

from __future__ import annotations

from ophion.cli.anvil.help import anvil_help, anvil_options, anvil_page
from ophion.cli.anvil.options import AnvilOptions
from ophion.runtime.options import specs_of


def test_help_and_page_have_every_option() -> None:
    help_text, page = anvil_help(), anvil_page("# Title")
    for spec in specs_of(AnvilOptions):
        for flag in spec.declaration.flags:
            assert flag in help_text
            assert f"`{flag}`" in page
    assert "[env: ANVIL_IP_ADDR]" in help_text
    assert len(anvil_options()) == len(specs_of(AnvilOptions))
