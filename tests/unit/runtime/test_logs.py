"""Tests log lines and levels."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from ophion.errors import ConfigError
from ophion.runtime import logs
from ophion.runtime.logs import LogFormat, LogLevel


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """Restore the loggers for other tests."""
    root = logging.getLogger("ophion")
    handlers, propagate, level = root.handlers[:], root.propagate, root.level
    yield
    root.handlers[:] = handlers
    root.propagate = propagate
    root.setLevel(level)


def test_a_line_has_time_thread_level_source_and_message() -> None:
    stream = io.StringIO()
    logs.configure(LogLevel.INFO, target=stream)
    logging.getLogger("ophion.chain.importer").warning("block imported number=%d", 12)
    line = stream.getvalue()
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}[+-]\d{4} \| main \| WARN  \| importer \| block imported number=12\n",
        line,
    )


def test_a_second_stream_gets_the_same_lines() -> None:
    first, second = io.StringIO(), io.StringIO()
    logs.configure(LogLevel.INFO, LogFormat.JSON, target=logging.StreamHandler(first), also=second)
    logging.getLogger("ophion.pool").info("hello")
    assert first.getvalue() == second.getvalue() != ""


def test_a_json_line_is_one_object() -> None:
    stream = io.StringIO()
    logs.configure(LogLevel.INFO, LogFormat.JSON, target=stream)
    logging.getLogger("ophion.pool").info('said "%s"', "hello")
    line = orjson.loads(stream.getvalue())
    assert (line["level"], line["source"], line["message"]) == ("INFO", "ophion.pool", 'said "hello"')


_HOSTILE = "no\n2026-01-01 00:00:00.000+0000 | main | INFO  | node | forged\x1b[2J\x9b1m\u202e\x7f"
_HOSTILE_SHOWN = r"no\n2026-01-01 00:00:00.000+0000 | main | INFO  | node | forged\x1b[2J\x9b1m\u202e\x7f"


@pytest.mark.parametrize("form", list(LogFormat))
def test_hostile_text_stays_one_printable_line(form: LogFormat) -> None:
    stream = io.StringIO()
    logs.configure(LogLevel.INFO, form, target=stream)
    logging.getLogger("ophion.enclave").warning("enclave refused reason=%s", _HOSTILE)
    line = stream.getvalue()
    assert line.removesuffix("\n").isprintable()
    message = orjson.loads(line)["message"] if form is LogFormat.JSON else line
    assert f"reason={_HOSTILE_SHOWN}" in message


@pytest.mark.parametrize("form", list(LogFormat))
def test_an_exception_cannot_forge_a_line(form: LogFormat) -> None:
    stream = io.StringIO()
    logs.configure(LogLevel.INFO, form, target=stream)
    try:
        raise ValueError(_HOSTILE)
    except ValueError:
        logging.getLogger("ophion.pool").exception("failed")
    first, *others = stream.getvalue().splitlines()
    shown = orjson.loads(first)["error"].split("\n") if form is LogFormat.JSON else others
    assert len(shown) > 2
    assert all(line.isprintable() and line.startswith("    ") for line in shown)
    assert "\x1b" not in stream.getvalue()


def test_handlers_of_a_configuration_file_escape_as_well(tmp_path: Path) -> None:
    log, config = tmp_path / "own.log", tmp_path / "logging.json"
    handler = {"class": "logging.FileHandler", "filename": str(log)}
    config.write_bytes(
        orjson.dumps({"version": 1, "handlers": {"own": handler}, "loggers": {"ophion": {"handlers": ["own"]}}})
    )
    logs.configure_from_file(config)
    try:
        raise ValueError(_HOSTILE)
    except ValueError:
        logging.getLogger("ophion.pool").exception("failed reason=%s", _HOSTILE)
    for opened in logging.getLogger("ophion").handlers:
        opened.close()
    first, *others = log.read_text().split("\n")[:-1]
    assert first == f"failed reason={_HOSTILE_SHOWN}"
    assert all(line.isprintable() and line.startswith("    ") for line in others)


def test_an_exception_is_shown_once() -> None:
    stream = io.StringIO()
    logs.configure(LogLevel.INFO, target=stream)
    try:
        raise ValueError("odd")
    except ValueError:
        logging.getLogger("ophion.pool").exception("failed")
    assert stream.getvalue().count("ValueError: odd") == 1


@pytest.mark.parametrize(
    ("level", "seen"),
    [
        ("OFF", []),
        ("FATAL", []),
        ("ERROR", ["e"]),
        ("WARN", ["e", "w"]),
        ("INFO", ["e", "w", "i"]),
        ("all", ["e", "w", "i", "d", "t"]),
    ],
)
def test_levels_include_the_ones_before_them(level: str, seen: list[str]) -> None:
    stream = io.StringIO()
    chosen = LogLevel.named(level)
    assert chosen is not None
    logs.configure(chosen, target=stream)
    logger = logging.getLogger("ophion.levels")
    logger.error("e")
    logger.warning("w")
    logger.info("i")
    logger.debug("d")
    logger.log(logs.TRACE, "t")
    assert [line.rpartition("| ")[2] for line in stream.getvalue().splitlines()] == seen


def test_an_unknown_level_has_no_name() -> None:
    assert LogLevel.named("loud") is None


def test_one_logger_can_have_a_level_of_its_own_until_all_are_set() -> None:
    stream = io.StringIO()
    logs.configure(LogLevel.ERROR, target=stream)
    logs.set_level(LogLevel.DEBUG, ["ophion.pool"])
    logging.getLogger("ophion.pool").debug("one")
    logging.getLogger("ophion.chain").debug("two")
    logs.set_level(LogLevel.ERROR)
    logging.getLogger("ophion.pool").debug("three")
    assert [line.rpartition("| ")[2] for line in stream.getvalue().splitlines()] == ["one"]
    assert logging.getLogger("ophion").level == LogLevel.ERROR.value


def test_a_logging_configuration_that_cannot_be_read_is_one_error(tmp_path: Path) -> None:
    file = tmp_path / "logging.json"
    file.write_text('{"version": 7}')
    with pytest.raises(ConfigError, match="Unable to read the logging configuration"):
        logs.configure_from_file(file)


@pytest.mark.parametrize(
    ("content", "why"),
    [(None, "No such file or directory"), ("", "'formatters' is missing"), ("nonsense", "no section headers")],
)
def test_an_ini_file_that_cannot_be_used_says_why(tmp_path: Path, content: str | None, why: str) -> None:
    file = tmp_path / "logging.ini"
    if content is not None:
        file.write_text(content)
    with pytest.raises(ConfigError, match=why):
        logs.configure_from_file(file)


def test_a_file_of_gigabytes_says_so(tmp_path: Path) -> None:
    with (tmp_path / "logging.json").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(ConfigError, match=r"logging\.json: more than 1048576 bytes"):
        logs.configure_from_file(tmp_path / "logging.json")
