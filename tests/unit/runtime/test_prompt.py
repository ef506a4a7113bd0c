"""Futures that tell their listener at once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ophion.runtime.prompt import Prompt


def test_the_listener_hears_in_the_step_of_the_answer() -> None:
    async def story() -> None:
        heard: list[int] = []
        prompt: Prompt[int] = Prompt(loop=asyncio.get_running_loop())
        prompt.tell(lambda done: heard.append(done.result()))
        prompt.answer(7)
        assert heard == [7]
        prompt.answer(8)
        prompt.fail(ValueError("too late"))
        assert heard == [7]
        assert await prompt == 7

    asyncio.run(story())


def test_an_error_is_an_answer() -> None:
    async def story() -> None:
        heard: list[BaseException | None] = []
        prompt: Prompt[int] = Prompt(loop=asyncio.get_running_loop())
        prompt.tell(lambda done: heard.append(done.exception()))
        error = ValueError("no")
        prompt.fail(error)
        assert heard == [error]
        with pytest.raises(ValueError, match="no"):
            await prompt

    asyncio.run(story())


def test_who_comes_late_hears_all_the_same() -> None:
    async def story() -> None:
        heard: list[int] = []
        prompt: Prompt[int] = Prompt(loop=asyncio.get_running_loop())
        prompt.answer(7)
        prompt.tell(lambda done: heard.append(done.result()))
        await asyncio.sleep(0)
        assert heard == [7]

    asyncio.run(story())


def test_who_has_gone_hears_nothing() -> None:
    async def story() -> None:
        heard: list[Any] = []
        prompt: Prompt[int] = Prompt(loop=asyncio.get_running_loop())
        prompt.tell(heard.append)
        prompt.cancel()
        prompt.answer(7)
        await asyncio.sleep(0)
        assert heard == []

    asyncio.run(story())


def test_a_listener_that_fails_does_not_stop_who_answers() -> None:
    async def story() -> None:
        told: list[dict[str, Any]] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda loop, context: told.append(context))
        prompt: Prompt[int] = Prompt(loop=loop)
        prompt.tell(lambda done: 1 // 0)
        prompt.answer(7)
        assert [type(context["exception"]) for context in told] == [ZeroDivisionError]
        assert await prompt == 7

    asyncio.run(story())
