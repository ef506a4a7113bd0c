"""The entry point: runs a command and shows failures in one line, with a traceback at --logging=DEBUG."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ophion.cli.arguments import Arguments, read_arguments
from ophion.cli.command import CommandSession
from ophion.cli.option_loading import load_session
from ophion.cli.used_sections import read_used_sections
from ophion.errors import ConfigError, OphionError
from ophion.native.exceptions import NativeError
from ophion.runtime.interrupts import raise_again
from ophion.runtime.options import Options
from ophion.runtime.options.sources import PREFIXES
from ophion.runtime.terminal_text import escape_text
from ophion.version import client_version

if TYPE_CHECKING:
    from ophion.node.config import NodeConfig

_BESU = "besu"
_ANVIL = "anvil"
_BESU_VARIABLES = {
    "OPHION_BESU_CONVENTIONS": "true",
    "OPHION_PERMISSIONS_ACCOUNTS_CONTRACT_AT_ADMISSION": "true",
}
"""Options that the word besu, or a link of this name, sets."""
EXIT_FAILURE = 1
EXIT_INTERNAL = 70
EXIT_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line. Returns the exit code."""
    tokens = list(sys.argv[1:] if argv is None else argv)
    environ: Mapping[str, str] = os.environ
    if argv is None and os.path.basename(sys.argv[0]) == _BESU:  # the program was called through a link named besu
        tokens.insert(0, _BESU)
        from ophion.node.besu.home import home_of  # lazy import: only the command `besu` needs it

        home = home_of(sys.argv[0])
        environ = os.environ if home is None else {"OPHION_BESU_HOME": str(home), **os.environ}
    if argv is None and os.path.basename(sys.argv[0]) == _ANVIL:
        tokens.insert(0, _ANVIL)
    _prepare_streams()
    try:
        code = _run(tokens, environ)
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # the reader of the program's output has closed the pipe
        _abandon_output()
        return EXIT_FAILURE
    except SystemExit:
        raise
    except OSError as error:
        if not _is_of_output(error):
            return _report(error, _wants_traceback(tokens, os.environ))
        _abandon_output()
        print(f"Unable to write to standard output: {error.strerror}", file=sys.stderr)
        return EXIT_FAILURE
    except BaseException as error:  # noqa: BLE001 - reports every error; a Rust panic is a BaseException
        return _report(error, _wants_traceback(tokens, os.environ))
    return code


def _prepare_streams() -> None:
    """Make the standard streams usable with any locale, and replace streams that were closed before the start."""
    # stdout is None if the file descriptor of stdout is closed
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - stays open until the process ends
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def _is_of_output(error: OSError) -> bool:
    """Whether an error is a failed write to standard output. Errors of all other files contain a file name."""
    return error.filename is None and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)


def _abandon_output() -> None:
    """Stop the interpreter from reporting a failed write to standard output again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Misused(ConfigError):
    """Raised when the command line is invalid. The error is printed together with the usage line."""

    def __init__(self, problems: Sequence[str], usage_line: str, code: int = EXIT_FAILURE) -> None:
        super().__init__(problems)
        self.usage_line = usage_line
        self.code = code


def _run(tokens: Sequence[str], environ: Mapping[str, str]) -> int:
    if tokens[:1] == [_ANVIL]:  # after the word anvil, the rest is a whole command line of Anvil
        return _run_anvil(tokens[1:], environ)
    return _run_command(tokens, environ)


def _run_anvil(tokens: Sequence[str], environ: Mapping[str, str]) -> int:
    from ophion.cli.anvil.command_line import EXIT_USAGE, anvil_start  # lazy import: only Anvil's command line needs it

    try:
        started = anvil_start(tokens, environ)
        return 0 if started is None else _run_command(*started)
    except ConfigError as error:
        raise _Misused(error.problems, "Usage: anvil [OPTIONS] [COMMAND]", EXIT_USAGE) from error


def _run_command(tokens: Sequence[str], environ: Mapping[str, str]) -> int:
    is_besu = tokens[:1] == [_BESU]  # after the word besu, the rest is a whole command line of Besu
    arguments, settings = _read(tokens, environ)
    if is_besu:
        environ = {**_BESU_VARIABLES, **environ}
    if arguments.asks("help"):
        return _help(arguments, settings)
    if arguments.asks("version"):
        print(client_version())
        return 0
    try:
        own, session = load_session(arguments, environ, settings)
        raise_again()
        if session.settings.is_given("--print-paths-and-exit"):
            return _print_paths(session.settings.config)
        if arguments.command is not None:
            return arguments.command.run(own, session)
        if arguments.family is None:
            return _run_node(session, environ)
    except ConfigError as error:
        from ophion.cli.help import usage  # lazy import: only errors and help texts need this module

        raise _Misused(error.problems, usage(arguments.family, arguments.command)) from error
    return _help(arguments, settings)


def _read(tokens: Sequence[str], environ: Mapping[str, str]) -> tuple[Arguments, type[Options]]:
    """Split the command line. Returns the configuration class of its global options too."""
    used = read_used_sections(tokens, environ)
    if used is not None:
        return used
    # lazy import: most commands start faster without the options of all packages
    from ophion.node.config import NodeConfig

    return read_arguments(tokens[tokens[:1] == [_BESU] :], NodeConfig), NodeConfig


def _help(arguments: Arguments, settings: type[Options]) -> int:
    from ophion.cli.help import help_text  # lazy import: only errors and help texts need this module

    print(help_text(arguments.family, arguments.command, settings))
    return 0


def _print_paths(config: NodeConfig) -> int:
    from ophion.node.besu.path_access import BESU_USER, UnknownUser, missing_access

    try:
        for line in missing_access(config, *(config.process.print_paths_and_exit or (BESU_USER,))):
            print(line)
    except UnknownUser as error:
        raise ConfigError([str(error)]) from None
    return 0


def _run_node(session: CommandSession, environ: Mapping[str, str]) -> int:
    # lazy import: most commands do not start a node
    from ophion.node.config import NodeConfig
    from ophion.node.launch import launch
    from ophion.runtime.options import misspelt_variables, specs_of, warnings_of

    found = misspelt_variables(environ, specs_of(NodeConfig))
    for warning in (*found, *session.warnings, *warnings_of(session.settings)):
        print(f"Warning: {warning}", file=sys.stderr)
    return launch(session.settings)


def _report(error: BaseException, with_traceback: bool) -> int:
    """Print an error in one line, or with a traceback at --logging=DEBUG, and return the exit code."""
    if with_traceback:
        import traceback

        traceback.print_exception(error)
    if isinstance(error, _Misused):
        if not with_traceback:
            print(escape_text(error.message), file=sys.stderr)
        called = error.usage_line.removeprefix("Usage: ").partition(" [")[0].removesuffix(" COMMAND")
        print(f"\n{error.usage_line}\nTry `{called} --help`.", file=sys.stderr)
        return error.code
    if isinstance(error, OphionError | NativeError):
        if not with_traceback:
            print(escape_text(str(error)), file=sys.stderr)
        return EXIT_FAILURE
    if isinstance(error, OSError) and error.filename is not None:
        # the operating system refused the file in `filename`: it may be missing, or a permission is missing, or its
        # name is too long
        if not with_traceback:
            print(f"Unable to use {error.filename}: {error.strerror}", file=sys.stderr)
        return EXIT_FAILURE
    if isinstance(error, FileNotFoundError) and not _has_current_directory():
        if not with_traceback:
            print("The current directory does not exist any more: change to another one.", file=sys.stderr)
        return EXIT_FAILURE
    if not with_traceback:
        print(
            f"Internal error: {type(error).__name__}: {escape_text(str(error))}\n"
            "This is a mistake in Ophion; run again with --logging=DEBUG to see where it happened.",
            file=sys.stderr,
        )
    return EXIT_INTERNAL


def _has_current_directory() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return False
    return True


def _wants_traceback(tokens: Sequence[str], environ: Mapping[str, str]) -> bool:
    """Whether the command line or the environment sets --logging to DEBUG or a more verbose level. Reads argv directly,
    because parsing the options may have failed.
    """
    level = next((environ[f"{prefix}LOGGING"] for prefix in PREFIXES if f"{prefix}LOGGING" in environ), "")
    if match := re.search(r"(?:^|\0)(?:--logging|-l)[=\0]?([A-Za-z]+)(?:\0|$)", "\0".join(tokens)):
        level = match.group(1)
    return level.upper() in ("DEBUG", "TRACE", "ALL")
