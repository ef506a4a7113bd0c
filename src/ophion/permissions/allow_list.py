"""An allow-list in force: in memory, with the file it came from."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from ophion.errors import RulesError
from ophion.permissions.rules_file import NotPersisted, RulesFile
from ophion.runtime.topic import Topic

T = TypeVar("T")

log = logging.getLogger(__name__)


class ListChanged(Struct, Generic[T], frozen=True):
    """A list in force is another one now."""

    added: tuple[T, ...]
    removed: tuple[T, ...]


class AllowList(Generic[T]):
    """Who is permitted. Every change is all or nothing; others hear of it through `changed`.

    `entries` is replaced, never altered, so another thread may read it at any time.
    """

    def __init__(self, file: RulesFile[T]) -> None:
        """Reads the file: `RulesError` says what is wrong with it."""
        self.file = file
        self.mark = file.mark()
        """The file as it was before it was read."""
        self.entries: dict[T, None] = file.read()
        self.changed: Topic[ListChanged[T]] = Topic()
        if file.is_read_only():
            log.warning("%s is read-only: changes of the permitted %ss cannot be kept", file.path, self._one)

    def __contains__(self, item: object) -> bool:
        return item in self.entries

    def __iter__(self) -> Iterator[T]:
        return iter(self.entries)

    @property
    def _one(self) -> str:
        return self.file.vocabulary.one

    def add(self, items: Sequence[T]) -> None:
        """Permit more; none of them may be listed already."""
        self.prepare(items, ())()

    def remove(self, items: Sequence[T]) -> None:
        """Permit less; all of them must be listed."""
        self.prepare((), items)()

    def check(self, added: Sequence[T], removed: Sequence[T]) -> None:
        """`RulesError` when a change makes no sense for this list."""
        if any(item in self.entries for item in added):
            raise RulesError(f"Cannot add an existing {self._one} to whitelist")
        if any(item not in self.entries for item in removed):
            raise RulesError(f"Cannot remove an absent {self._one} from whitelist")

    def prepare(self, added: Sequence[T], removed: Sequence[T]) -> Callable[[], None]:
        """Do what takes long, in any thread: the file. What is returned puts the change in force, on the loop.

        File first. One that somebody else has changed stays as it is, and the change holds until the next start.
        """
        self.check(added, removed)
        problem: RulesError | None = None
        try:
            self.file.change(self.entries, added, removed)
        except NotPersisted:
            raise
        except RulesError as error:
            problem = error
        gone = set(removed)
        entries = {item: None for item in self.entries if item not in gone} | dict.fromkeys(added)
        return self.replacing(entries, problem)

    def replacing(self, entries: dict[T, None], problem: RulesError | None = None) -> Callable[[], None]:
        """What puts another list in force, and then tells of a problem that did not stop it."""
        before = self.entries
        change = ListChanged(
            tuple(item for item in entries if item not in before), tuple(item for item in before if item not in entries)
        )

        def replace() -> None:
            self.entries = entries
            if change.added or change.removed:
                self.changed.publish(change)
            if problem is not None:
                raise problem

        return replace
