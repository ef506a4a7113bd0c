"""Address of a shared vote store, as `--vote-store` writes it: `etcd://HOST:PORT[,HOST:PORT…]/PREFIX`.

`etcds://` uses TLS.
"""

from __future__ import annotations

import re
import urllib.parse
from typing import Final

from msgspec import Struct

from ophion.runtime.options import is_url

DEFAULT_PREFIX: Final = "ophion"
_SCHEMES: Final = {"etcd": "http", "etcds": "https"}
_PREFIX: Final = re.compile(r"[!-~]*")
"""Visible ASCII characters. A question mark or a number sign would begin another part of the address."""
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
    if not all(map(_is_member, urls)) or not _PREFIX.fullmatch(prefix) or {"?", "#"} & set(prefix):
        raise ValueError(f"'{text}' is not a vote store: {_FORM}")
    places = {(parts.hostname, parts.port) for parts in map(urllib.parse.urlsplit, urls)}
    if len(places) < len(urls):
        raise ValueError(f"'{text}' names a member of the vote store twice")
    return VoteStoreAddress(urls, prefix.strip("/") or DEFAULT_PREFIX)


def _is_member(url: str) -> bool:
    """Return whether a URL names a host and a port, and nothing else."""
    if not is_url(url, "http", "https"):
        return False
    parts = urllib.parse.urlsplit(url)
    has_more = parts.username is not None or parts.query or parts.fragment
    return bool(_PREFIX.fullmatch(parts.hostname or "") and parts.port and not has_more)
