"""HTTP client of a remote enclave: the shared HTTP client with the errors of `Enclave`."""

from __future__ import annotations

from typing import TypeAlias

from ophion.enclave.interface import EnclaveUnreachable
from ophion.runtime.http_client import HttpClient as PlainHttpClient
from ophion.runtime.http_client import HttpError, HttpReply

Answer: TypeAlias = HttpReply


class HttpClient(PlainHttpClient):
    """Sends requests to one enclave. Raises `EnclaveUnreachable` if the enclave does not answer."""

    async def get(self, path: str) -> Answer:
        return await self._ask("GET", path, b"", {})

    async def post(self, path: str, body: bytes, content_type: str) -> Answer:
        return await self._ask("POST", path, body, {"Content-Type": content_type})

    async def _ask(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> Answer:
        try:
            return await self.request(method, path, body, headers)
        except HttpError as error:
            raise EnclaveUnreachable(f"the enclave at {self.url} does not answer: {error}") from None
