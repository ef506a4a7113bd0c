from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from ophion.primitives.enode import Enode
from ophion.runtime import host_name_resolver
from ophion.runtime.clock import SystemClock
from ophion.runtime.host_name_resolver import HostNames, hosts_file_lookup

NODE = Enode.parse(f"enode://{'07' * 64}@Validator-1.nodes:30303", host_names=True)


class Answers:
    """A lookup with prepared answers."""

    def __init__(self, *addresses: str) -> None:
        self.addresses: Sequence[str] = addresses
        self.threads: set[str] = set()

    def __call__(self, name: str) -> Sequence[str]:
        self.threads.add(threading.current_thread().name)
        if not self.addresses:
            raise OSError(-2, "Name or service not known")
        return self.addresses


async def _until_changed(names: HostNames) -> str:
    changed = asyncio.get_running_loop().create_future()
    names.changed.listen(lambda name: None if changed.done() else changed.set_result(name))
    return str(await asyncio.wait_for(changed, 60))


def test_a_name_gets_its_address_in_a_thread() -> None:
    async def run() -> None:
        answers = Answers("127.0.0.1")
        names = HostNames(SystemClock(), answers)
        names.add([NODE])
        assert names.resolve(NODE).ip == ""
        task = asyncio.create_task(names.run())
        assert await _until_changed(names) == "validator-1.nodes"
        assert names.resolve(NODE) == NODE.at("127.0.0.1")
        assert names.resolve(NODE).url == NODE.url
        assert answers.threads == {"lookup of validator-1.nodes"}
        task.cancel()

    asyncio.run(run())


def test_a_failed_connection_asks_again_and_takes_the_next_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_name_resolver, "MIN_INTERVAL_S", 0.0)

    async def run() -> None:
        answers = Answers("127.0.0.1", "127.0.0.2")
        names = HostNames(SystemClock(), answers)
        names.add([NODE])
        task = asyncio.create_task(names.run())
        await _until_changed(names)
        names.failed(NODE.host)
        await _until_changed(names)
        assert names.resolve(NODE).ip == "127.0.0.2"
        answers.addresses = ["127.0.0.3"]
        names.failed(NODE.host)
        await _until_changed(names)
        assert names.resolve(NODE).ip == "127.0.0.3"
        task.cancel()

    asyncio.run(run())


def test_a_name_without_address_is_one_warning_and_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(host_name_resolver, "REFRESH_INTERVAL_S", 0.001)

    async def run() -> None:
        answers = Answers()
        asked = 0

        def lookup(name: str) -> Sequence[str]:
            nonlocal asked
            asked += 1
            return ["127.0.0.1"] if asked == 4 else answers(name)

        names = HostNames(SystemClock(), lookup, is_updated=False)
        names.add([NODE])
        task = asyncio.create_task(names.run())
        await _until_changed(names)
        assert asked == 4
        await asyncio.sleep(0.01)
        assert asked == 4, "without updates a name is resolved once"
        task.cancel()

    with caplog.at_level(logging.INFO):
        asyncio.run(run())
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert warnings == [
        "host name does not resolve name=validator-1.nodes reason=Name or service not known retry_after_s=0.001"
    ]


def test_a_hosts_file_comes_before_the_system(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text("# nodes\n127.0.0.2  validator1 Validator-1.nodes # first\n::1 six\n")
    lookup = hosts_file_lookup(file, fallback=lambda name: [f"asked for {name}"])
    assert lookup("validator-1.nodes") == ["127.0.0.2"]
    assert lookup("six") == ["::1"]
    assert lookup("other") == ["asked for other"]
