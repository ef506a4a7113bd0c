"""Log lines in one format, as text or JSON; levels can change while the node runs.

    2026-11-15 08:05:11.042+0000 | main | INFO  | importer | block imported number=12 txs=3 ms=4

The columns follow operations.md 8, because scripts parse them. Levels have the names of log4j, including FATAL and
TRACE. Control characters in a message become visible escapes.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from typing import TextIO

import orjson

from ophion.errors import ConfigError
from ophion.runtime.operator_files import content_of
from ophion.runtime.terminal_text import escape_line, escape_lines

TRACE = 5
_ROOT = "ophion"


class LogLevel(Enum):
    """Verbosity. Each level includes the levels before it."""

    OFF = logging.CRITICAL + 10
    FATAL = logging.CRITICAL
    ERROR = logging.ERROR
    WARN = logging.WARNING
    INFO = logging.INFO
    DEBUG = logging.DEBUG
    TRACE = TRACE
    ALL = 1

    @classmethod
    def named(cls, name: str) -> LogLevel | None:
        """Return the level with this name, ignoring case; None when unknown."""
        return cls.__members__.get(name.upper())


class LogFormat(Enum):
    """Format of a log line."""

    TEXT = "text"
    JSON = "json"


_NAMES = {
    logging.CRITICAL: "FATAL",
    logging.ERROR: "ERROR",
    logging.WARNING: "WARN",
    logging.INFO: "INFO",
    logging.DEBUG: "DEBUG",
    TRACE: "TRACE",
}
_COLOURS = {"FATAL": "\x1b[31m", "ERROR": "\x1b[31m", "WARN": "\x1b[33m", "DEBUG": "\x1b[2m", "TRACE": "\x1b[2m"}
_RESET = "\x1b[0m"


class TextFormatter(logging.Formatter):
    """Formats a record as columns separated by bars. Caches the formatted time, because many lines have the same
    second.
    """

    def __init__(self, is_coloured: bool) -> None:
        super().__init__()
        self._is_coloured = is_coloured
        self._second = -1
        self._stamp = ""
        self._zone = ""

    def format(self, record: logging.LogRecord) -> str:
        second = int(record.created)
        if second != self._second:
            local = time.localtime(second)
            self._second = second
            self._stamp = time.strftime("%Y-%m-%d %H:%M:%S", local)
            self._zone = time.strftime("%z", local)
        level = _NAMES.get(record.levelno, record.levelname)
        thread = "main" if record.threadName == "MainThread" else record.threadName
        source = record.name.rpartition(".")[2]
        text = escape_line(record.getMessage())
        if record.exc_info:
            text = f"{text}\n{escape_lines(self.formatException(record.exc_info))}"
        line = f"{self._stamp}.{int(record.msecs):03d}{self._zone} | {thread} | {level:<5} | {source} | {text}"
        colour = _COLOURS.get(level) if self._is_coloured else None
        return f"{colour}{line}{_RESET}" if colour else line


class JsonFormatter(logging.Formatter):
    """One JSON object per line, for log collectors."""

    def format(self, record: logging.LogRecord) -> str:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = {
            "time": f"{stamp}.{int(record.msecs):03d}Z",
            "thread": "main" if record.threadName == "MainThread" else record.threadName,
            "level": _NAMES.get(record.levelno, record.levelname),
            "source": record.name,
            "message": escape_line(record.getMessage()),
        }
        if record.exc_info:
            line["error"] = escape_lines(self.formatException(record.exc_info))
        return orjson.dumps(line).decode()


class EscapeFilter(logging.Filter):
    """Escapes untrusted text, for handlers whose formatter the operator has chosen."""

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        if not text.isprintable():
            record.msg, record.args = escape_line(text), None
        if record.exc_info and not record.exc_text:
            record.exc_text = escape_lines(logging.Formatter().formatException(record.exc_info))
        return True


def configure(
    level: LogLevel,
    form: LogFormat = LogFormat.TEXT,
    is_coloured: bool | None = None,
    target: TextIO | logging.Handler | None = None,
    also: TextIO | None = None,
) -> None:
    """Send log lines to a stream (default: standard output) or a handler, and to the stream `also` if there is one.
    Replaces an earlier configuration.
    """
    if isinstance(target, logging.Handler):
        handler, is_terminal = target, False
    else:
        stream = sys.stdout if target is None else target
        handler, is_terminal = logging.StreamHandler(stream), stream.isatty()
    if is_coloured is None:
        is_coloured = is_terminal
    handler.setFormatter(JsonFormatter() if form is LogFormat.JSON else TextFormatter(is_coloured))
    root = logging.getLogger(_ROOT)
    for old in root.handlers[:]:
        root.removeHandler(old)
        old.close()
    root.addHandler(handler)
    if also is not None:
        copy = logging.StreamHandler(also)
        copy.setFormatter(handler.formatter)
        root.addHandler(copy)
    root.propagate = False
    # no log format shows the process, so do not look up its name and id for each record
    logging.logMultiprocessing = False
    logging.logProcesses = False
    set_level(level)


def configure_from_file(path: Path) -> None:
    """Configure logging from a file: JSON (dictConfig) or INI (fileConfig)."""
    import configparser
    import logging.config

    try:
        content = content_of(path)
        if path.suffix == ".json":
            logging.config.dictConfig(orjson.loads(content))
        else:
            sections = configparser.ConfigParser(interpolation=None)
            sections.read_string(content.decode())
            logging.config.fileConfig(sections, disable_existing_loggers=False)
    except OSError as error:
        raise ConfigError(f"Unable to read the logging configuration {path}: {error.strerror}") from None
    except KeyError as error:
        raise ConfigError(f"Unable to read the logging configuration {path}: {error} is missing") from None
    except (ValueError, TypeError, RuntimeError, AttributeError, ImportError, configparser.Error) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ConfigError(f"Unable to read the logging configuration {path}: {reason}") from None
    escaping = EscapeFilter()
    for logger in (logging.root, *logging.root.manager.loggerDict.values()):
        for handler in logger.handlers if isinstance(logger, logging.Logger) else ():
            handler.addFilter(escaping)


def set_level(level: LogLevel, loggers: Iterable[str] | None = None) -> None:
    """Change the level of the given loggers. Without names, set one level for all loggers and remove individual
    levels.
    """
    if loggers is not None:
        for name in loggers:
            logging.getLogger(name).setLevel(level.value)
        return
    for name, logger in list(logging.root.manager.loggerDict.items()):
        if isinstance(logger, logging.Logger) and name.startswith(_ROOT + "."):
            logger.setLevel(logging.NOTSET)
    logging.getLogger(_ROOT).setLevel(level.value)
