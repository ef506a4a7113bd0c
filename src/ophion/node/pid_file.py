"""The file of `--pid-path`: holds the process id while the node runs. Health checks of containers look for it."""

from __future__ import annotations

import logging
import os
from pathlib import Path

log = logging.getLogger(__name__)


def write_pid_file(path: Path | None) -> None:
    """Write the process id. If this fails, logs one error, as in Besu, and the node continues."""
    if path is None:
        return
    try:
        # do not follow symbolic links: the file is often in /tmp, where other users can create links
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o644)
        with os.fdopen(descriptor, "w") as file:
            file.write(str(os.getpid()))
    except OSError as error:
        log.error("pid file not written path=%s reason=%s", path, error.strerror)


def remove_pid_file(path: Path | None) -> None:
    """Remove the file, unless another process has written it since."""
    if path is None:
        return
    try:
        if path.read_text() == str(os.getpid()):
            path.unlink()
    except (OSError, ValueError):
        log.debug("pid file not removed path=%s", path)
