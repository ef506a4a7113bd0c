"""Commands from other terminals to a supervisor: one JSON line each way over a socket in the directory.

The path of a socket is limited to about 100 bytes, so both sides use a path relative to the directory.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from ophion.errors import CommandError
from ophion.quickstart.network_directory import CONTROL

_MAX_BYTES: Final = 64 * 1024
_ASKING_S: Final = 30.0

Order = Callable[[str, str | None], str]
"""Executes a command for a process and returns a description of the result. Raises `CommandError`."""


async def listen(directory: Path, order: Order) -> asyncio.Server:
    """Accept commands until the server is closed."""

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            asked = json.loads(await asyncio.wait_for(reader.readline(), _ASKING_S))
            answer = {"done": order(str(asked["do"]), asked.get("process"))}
        except CommandError as error:
            answer = {"error": str(error)}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            answer = {"error": f"not understood: {error}"}
        writer.write(json.dumps(answer).encode() + b"\n")
        writer.close()

    os.chdir(directory)
    with suppress(FileNotFoundError):
        os.unlink(CONTROL)  # a killed supervisor may have left this socket
    return await asyncio.start_unix_server(take, CONTROL, limit=_MAX_BYTES)


def send_command(directory: Path, do: str, process: str | None = None) -> str:
    """Send a command and return a description of the result. Raises `CommandError` with the reason."""
    here = Path.cwd()
    try:
        os.chdir(directory)
        with socket.socket(socket.AF_UNIX) as one:
            one.settimeout(_ASKING_S)
            one.connect(CONTROL)
            one.sendall(json.dumps({"do": do, "process": process}).encode() + b"\n")
            answer: Any = json.loads(one.makefile("rb").readline(_MAX_BYTES))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise CommandError(f"The quickstart in {directory} does not accept commands: {reason}.") from None
    finally:
        os.chdir(here)
    if "error" in answer:
        raise CommandError(str(answer["error"]))
    return str(answer["done"])
