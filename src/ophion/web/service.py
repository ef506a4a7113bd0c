"""Returns the files of the web interface by path. The files are read from disk once, at the first request.

Only files found at that time are served, so no path can lead out of the folder. The path of a view follows the `#` in
the URL. A plain path such as `/block/12`, which other explorers use, is redirected to the view.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final, NamedTuple

_TYPES: Final[Mapping[str, str]] = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
_GUARD: Final = (
    ("Content-Security-Policy", _POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cache-Control", "no-cache"),
)
_VIEWS: Final = frozenset(("block", "blocks", "tx", "address", "consensus", "playground", "search"))
_MAX_ADDRESS_LENGTH: Final = 256

Headers = tuple[tuple[str, str], ...]


class Answer(NamedTuple):
    """An HTTP answer: status, headers and body."""

    status: int
    headers: Headers
    body: bytes


class PageFiles:
    """Serves every file below one folder, by path."""

    def __init__(self, index: str = "index.html") -> None:
        """Create the lookup. `index` is the file for the path `/`."""
        self._index = index

    @cached_property
    def _answers(self) -> Mapping[str, Answer]:
        """Read the files at the first request, so that the node starts faster."""
        folder = files(__package__).joinpath("files")
        found = {f"/{name}": _answer(name, one.read_bytes()) for name, one in _walk(folder, "")}
        return found | {"/": found[f"/{self._index}"]}

    def answer(self, path: str, headers: Mapping[bytes, bytes]) -> Answer | None:
        """Answer a GET of `path`, which begins with a slash: a file, or a redirect to a view. Returns None for other
        paths.

        `headers` are the request headers by lower-case name.
        """
        found = self._answers.get(path)
        if found is None:
            return _to_view(path)
        tag = dict(found.headers)["ETag"].encode()
        if tag in (one.strip() for one in headers.get(b"if-none-match", b"").split(b",")):
            return Answer(304, found.headers, b"")
        return found

    @property
    def paths(self) -> tuple[str, ...]:
        """Return all paths that are served."""
        return tuple(sorted(self._answers))


def _walk(folder: Traversable, prefix: str) -> Iterator[tuple[str, Traversable]]:
    for one in folder.iterdir():
        if one.is_dir():
            yield from _walk(one, f"{prefix}{one.name}/")
        elif one.name.rpartition(".")[2] in _TYPES:
            yield prefix + one.name, one


def _answer(name: str, content: bytes) -> Answer:
    kind = _TYPES[name.rpartition(".")[2]]
    return Answer(200, (("Content-Type", kind), ("ETag", f'"{sha256(content).hexdigest()[:32]}"'), *_GUARD), content)


def _to_view(path: str) -> Answer | None:
    """Redirect `/block/12` to the view `#/block/12`; None if no view has this path. The redirect is relative, because
    the base path is unknown here.
    """
    parts = path.strip("/").split("/")
    if parts[0] not in _VIEWS or len(path) > _MAX_ADDRESS_LENGTH or not all(part.isalnum() for part in parts):
        return None
    up = "../" * (path.count("/") - 1) or "./"
    return Answer(302, (("Location", f"{up}#/{'/'.join(parts)}"), *_GUARD), b"")
