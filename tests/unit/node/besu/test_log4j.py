from __future__ import annotations

from pathlib import Path

import pytest

from ophion.cli.arguments import read_arguments
from ophion.cli.option_loading import read_sources
from ophion.node.besu.log4j import VARIABLE, parse_log4j
from ophion.node.config import NodeConfig
from ophion.runtime.options import load, specs_of

FORM = """<?xml version="1.0" encoding="UTF-8"?>
<Configuration status="INFO">
  <Properties><Property name="root.log.level">DEBUG</Property></Properties>
  <Appenders>
    <Console name="Console" target="SYSTEM_OUT"><PatternLayout pattern='{"message":"%msg"}%n'/></Console>
    <RollingFile name="Rolling" fileName="/var/log/besu-${env:HOSTNAME:-none}.log">
      <JsonLayout compact="true"/>
      <Policies><SizeBasedTriggeringPolicy size="10 MB"/></Policies>
      <DefaultRolloverStrategy max="5"/>
    </RollingFile>
  </Appenders>
  <Loggers>
    <Logger name="org.example" level="TRACE"/>
    <Root level="${sys:root.log.level}">REFS</Root>
  </Loggers>
</Configuration>
"""


def _form(*refs: str) -> bytes:
    return FORM.replace("REFS", "".join(f'<AppenderRef ref="{ref}"/>' for ref in refs)).encode()


def test_level_and_json_pattern_of_the_console() -> None:
    found = parse_log4j(_form("Console"), {})
    assert found.options == {"logging": "DEBUG", "logging-format": "JSON"}
    assert found.ignored == ("logger org.example",)


def test_a_file_beside_the_console() -> None:
    found = parse_log4j(_form("Rolling", "Console"), {"HOSTNAME": "v1"})
    assert found.options == {
        "logging": "DEBUG",
        "logging-format": "JSON",
        "logging-file": "/var/log/besu-v1.log",
        "logging-console": "true",
        "logging-file-max-size": "10",
        "logging-files-kept": "5",
    }
    assert found.ignored == ("logger org.example",)


def test_a_file_in_place_of_the_console() -> None:
    assert parse_log4j(_form("Rolling"), {"HOSTNAME": "v1"}).options == {
        "logging": "DEBUG",
        "logging-format": "JSON",
        "logging-file": "/var/log/besu-v1.log",
        "logging-file-max-size": "10",
        "logging-files-kept": "5",
    }


def test_options_come_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / "log.xml"
    file.write_bytes(_form("Console"))
    problems: list[str] = []
    arguments = read_arguments(["--logging=WARN"], NodeConfig)
    given, warnings = read_sources(arguments, {VARIABLE: str(file)}, None, specs_of(NodeConfig), problems)
    config = load(NodeConfig, given).config
    assert (config.logs.level.name, config.logs.format.name, problems) == ("WARN", "JSON", [])
    assert warnings == [f"Settings of {file} have no effect: logger org.example. Use --logging-config-file."]


@pytest.mark.parametrize("content", [b"", b"<a", b"status = info", b'<!DOCTYPE a [<!ENTITY b "c">]><a/>'])
def test_a_file_that_cannot_be_read_is_one_warning(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "log.xml"
    file.write_bytes(content)
    given, warnings = read_sources(
        read_arguments([], NodeConfig), {VARIABLE: str(file)}, None, specs_of(NodeConfig), []
    )
    assert (given, len(warnings)) == ([], 1)
    assert "is not used" in warnings[0]
