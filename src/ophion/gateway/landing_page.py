"""Serves the files of the web interface at the path `/` of the gateway."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ophion.gateway.routing import Page, PageAnswer
    from ophion.web.service import PageFiles


def page_files() -> Page:
    """Return a function that serves the files of the web interface. The first request reads the files."""

    @cache
    def files() -> PageFiles:
        from ophion.web.service import PageFiles

        return PageFiles()

    def answer(path: str, headers: Mapping[bytes, bytes]) -> PageAnswer | None:
        return files().answer(path, headers)

    return answer
