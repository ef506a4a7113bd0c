"""Records the functions of Ophion that a process calls. The folder must be on PYTHONPATH.

At exit, the file named by `FLOWS` holds a list of flows. A new flow begins with each HTTP input. A flow is a list of
`[file, function]`. Repeated calls of a function by the same caller in the same thread are listed once. Functions of the
extension have the file `native`.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import threading
from types import CodeType, FrameType
from typing import Any

_ROOT = f"{os.sep}src{os.sep}ophion{os.sep}"
_BEGINNING = ("rpc/transport/http/connection.py", "data_received")

_flows: list[list[tuple[str, str]]] = [[]]
_seen: set[tuple[int, str, str, CodeType | None]] = set()


def _note(frame: FrameType, event: str, argument: Any) -> None:
    if event == "call":
        _, is_ours, path = frame.f_code.co_filename.partition(_ROOT)
        step, caller = (path, frame.f_code.co_name), frame.f_back
    elif event == "c_call":
        module = getattr(argument, "__module__", None) or type(getattr(argument, "__self__", None)).__module__
        is_ours = "yes" if module.startswith("ophion.") else ""
        step, caller = ("native", argument.__name__), frame
    else:
        return
    if not is_ours:
        return
    if step == _BEGINNING:
        _flows.append([])
        _seen.clear()
    key = threading.get_ident(), *step, None if caller is None else caller.f_code
    if key not in _seen:
        _seen.add(key)
        _flows[-1].append(step)


def _write() -> None:
    sys.setprofile(None)
    with open(os.environ["FLOWS"], "w") as file:
        json.dump(_flows, file)


if "FLOWS" in os.environ:
    atexit.register(_write)
    threading.setprofile(_note)
    sys.setprofile(_note)
