"""Address of a shared vote store, as `--vote-store` writes it: `etcd://HOST:PORT[,HOST:PORT…]/PREFIX`."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

DEFAULT_PREFIX: Final = "ophion"
_SCHEME: Final = "etcd://"
_FORM: Final = "expected etcd://HOST:PORT[,HOST:PORT…]/PREFIX"


class VoteStoreAddress(Struct, frozen=True):
    """An etcd cluster and the prefix of the keys."""

    endpoints: tuple[str, ...]
    """HTTP URLs of the members."""
    prefix: str = DEFAULT_PREFIX

    def __str__(self) -> str:
        members = ",".join(url.removeprefix("http://") for url in self.endpoints)
        return f"{_SCHEME}{members}/{self.prefix}"


def read_vote_store(text: str) -> VoteStoreAddress:
    """Read the address of a vote store. Raises `ValueError`."""
    if not text.startswith(_SCHEME):
        raise ValueError(f"'{text}' is not a vote store: {_FORM}")
    members, _, prefix = text.removeprefix(_SCHEME).partition("/")
    urls = tuple(f"http://{member}" for member in members.split(","))
    for url in urls:
        parts = urlsplit(url)
        if not parts.hostname or parts.port is None or parts.username is not None:
            raise ValueError(f"'{text}' is not a vote store: {_FORM}")
    return VoteStoreAddress(urls, prefix.strip("/") or DEFAULT_PREFIX)
