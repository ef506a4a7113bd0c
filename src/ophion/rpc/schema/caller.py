"""The client of a request, as handlers see it."""

from __future__ import annotations

from typing import Protocol


class Caller(Protocol):
    """The connection that carried a request, for the few methods that must know the client."""

    @property
    def client(self) -> str:
        """The name in the client's token, or the client's IP address."""


class NotifiedCaller(Caller, Protocol):
    """A caller whose connection accepts notifications."""

    def notify(self, message: bytes) -> None:
        """Queue a message for the client. If the client does not read, the connection closes."""
