"""Completion scripts for a link named anvil."""

from __future__ import annotations

from collections.abc import Sequence

from ophion.cli.anvil.options import AnvilOptions
from ophion.errors import ConfigError
from ophion.runtime.options import specs_of

_SHELLS = ("bash", "zsh", "fish")


def completions(words: Sequence[str]) -> str:
    """Return the completion script of the shell that the command line names."""
    shell = next((word for word in words if not word.startswith("-")), "")
    if shell not in _SHELLS:
        raise ConfigError(f"There is no completion script for the shell '{shell}'. Choose one of {', '.join(_SHELLS)}.")
    flags = sorted({flag for spec in specs_of(AnvilOptions) for flag in spec.declaration.flags})
    choices = " ".join([*flags, "--help", "--version", "-h", "-V", "completions", "help"])
    if shell == "bash":
        reply = f'COMPREPLY=($(compgen -W "{choices}" -- "${{COMP_WORDS[COMP_CWORD]}}"))'
        return f"_anvil() {{\n    {reply}\n}}\ncomplete -o default -F _anvil anvil"
    if shell == "zsh":
        return f"#compdef anvil\n_anvil() {{\n    compadd -- {choices}\n    _files\n}}\ncompdef _anvil anvil"
    lines = []
    for spec in specs_of(AnvilOptions):
        names = " ".join(
            f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}"
            for flag in spec.declaration.flags
            if flag.startswith("--") or len(flag) == 2
        )
        text = spec.declaration.help.replace("'", "\\'")
        lines.append(f"complete -c anvil {names} -d '{text}'")
    return "\n".join([*lines, "complete -c anvil -a 'completions help'"])
