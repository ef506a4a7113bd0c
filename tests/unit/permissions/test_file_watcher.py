"""The watcher reports each change of a file by another program once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from ophion.permissions.allow_list import AllowList
from ophion.permissions.allow_list_file import RulesFile
from ophion.permissions.file_watcher import RulesFileWatcher
from ophion.permissions.list_requests import ACCOUNTS
from ophion.permissions.permissions import Permissions
from ophion.runtime.thread_pools import InlineLane, InlineLanes

A, B = (bytes([number]) * 20 for number in (1, 2))


class Story:
    """An allowlist, its file and a watcher."""

    def __init__(self, path: Path, caplog: pytest.LogCaptureFixture) -> None:
        self.path = path / "rules.toml"
        self.write(A)
        self.listed = AllowList(RulesFile(self.path, ACCOUNTS))
        self.turn = asyncio.Lock()
        self.watch = RulesFileWatcher([self.listed], InlineLane("files"), self.turn)
        self._caplog = caplog

    def write(self, *accounts: bytes) -> None:
        listed = ",".join(f'"0x{account.hex()}"' for account in accounts)
        self.path.write_text(f"accounts-whitelist=[{listed}]")

    async def told(self) -> list[str]:
        """Check the file and return the new log lines."""
        self._caplog.clear()
        await self.watch.check_files()
        return [record.getMessage() for record in self._caplog.records]


def run(path: Path, caplog: pytest.LogCaptureFixture, test: Callable[[Story], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        await test(Story(path, caplog))

    with caplog.at_level(logging.INFO):
        asyncio.run(main())


def test_external_changes_are_reported_once_and_not_applied(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def test(story: Story) -> None:
        assert await story.told() == []
        story.write(A, B)
        (line,) = await story.told()
        assert "difference=1 more and 0 fewer accounts than in force" in line
        assert await story.told() == []
        assert B not in story.listed
        story.path.write_text("accounts-whitelist=[")
        (line,) = await story.told()
        assert "Unable to read permissioning TOML config file" in line
        story.path.unlink()
        (line,) = await story.told()
        assert "No such file" in line
        story.write(A)
        assert await story.told() == [f"permission file matches the list in force again file={story.path}"]

    run(tmp_path, caplog, test)


def test_changes_of_the_node_itself_are_no_news(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def test(story: Story) -> None:
        assert await story.told() == []
        async with story.turn:
            finish = story.listed.prepare([B], ())
            looking = asyncio.create_task(story.told())
            await asyncio.sleep(0)
            finish()
        assert await looking == []

    run(tmp_path, caplog, test)


def test_who_has_no_lists_watches_no_files() -> None:
    assert Permissions().services(InlineLanes()) == []
