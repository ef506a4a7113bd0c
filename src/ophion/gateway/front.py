"""What a person sees at `/`."""

from __future__ import annotations

from ophion.gateway.paths import Page
from ophion.page.service import PageFiles


def page_files() -> Page:
    """The files of the page."""
    return PageFiles().answer
