"""Address of a shared vote store, as `--vote-store` writes it: `etcd://HOST:PORT[,HOST:PORT…]/PREFIX`.

`etcds://` uses TLS.
"""

from __future__ import annotations

import urllib.parse
from typing import Final

from msgspec import Struct

DEFAULT_PREFIX: Final = "ophion"
_SCHEMES: Final = {"etcd": "http", "etcds": "https"}
_FORM: Final = "expected etcd://HOST:PORT[,HOST:PORT…]/PREFIX, or etcds:// for TLS"


class VoteStoreAddress(Struct, frozen=True):
    """An etcd cluster and the prefix of the keys."""

    endpoints: tuple[str, ...]
    """URLs of the etcd servers: http or https."""
    prefix: str = DEFAULT_PREFIX

    @property
    def speaks_tls(self) -> bool:
        return self.endpoints[0].startswith("https://")

    def __str__(self) -> str:
        members = ",".join(url.partition("://")[2] for url in self.endpoints)
        return f"{'etcds' if self.speaks_tls else 'etcd'}://{members}/{self.prefix}"


def read_vote_store(text: str) -> VoteStoreAddress:
    """Read the address of a vote store. Raises `ValueError`."""
    name, _, rest = text.partition("://")
    scheme = _SCHEMES.get(name)
    if scheme is None:
        raise ValueError(f"'{text}' is not a vote store: {_FORM}")
    members, _, prefix = rest.partition("/")
    urls = tuple(f"{scheme}://{member}" for member in members.split(","))
    for url in urls:
        parts = urllib.parse.urlsplit(url)
        if not parts.hostname or parts.port is None or parts.username is not None:
            raise ValueError(f"'{text}' is not a vote store: {_FORM}")
    return VoteStoreAddress(urls, prefix.strip("/") or DEFAULT_PREFIX)
