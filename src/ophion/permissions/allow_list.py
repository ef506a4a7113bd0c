"""An allow-list in memory, with its file."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from ophion.errors import RulesError
from ophion.permissions.allow_list_file import NotPersisted, RulesFile
from ophion.runtime.topic import Topic

T = TypeVar("T")

log = logging.getLogger(__name__)


class ListChanged(Struct, Generic[T], frozen=True):
    """Event that an allow-list publishes after a change of its entries."""

    added: tuple[T, ...]
    removed: tuple[T, ...]


class AllowList(Generic[T]):
    """Permitted accounts or nodes. A change applies completely or not at all; `changed` announces the change.

    `entries` is replaced and never modified, so other threads may read it.
    """

    def __init__(self, file: RulesFile[T]) -> None:
        """Read the allow-list from its file. Raises `RulesError`."""
        self.file = file
        self.mark = file.mark()
        """Value of `RulesFile.mark` when this list read or wrote the file. A different current value means that another
        program has changed the file.
        """
        self.entries: dict[T, None] = file.read()
        self.changed: Topic[ListChanged[T]] = Topic()
        if file.is_read_only():
            log.warning(
                "permission file is read-only: changes are lost at a restart list=%ss file=%s", self._one, file.path
            )

    def __contains__(self, item: object) -> bool:
        return item in self.entries

    def __iter__(self) -> Iterator[T]:
        return iter(self.entries)

    @property
    def _one(self) -> str:
        return self.file.codec.one

    def add(self, items: Sequence[T]) -> None:
        """Add entries that are not listed yet."""
        self.prepare(items, ())()

    def remove(self, items: Sequence[T]) -> None:
        """Remove entries that are listed."""
        self.prepare((), items)()

    def check(self, added: Sequence[T], removed: Sequence[T]) -> None:
        """Raise `RulesError` if a change adds an entry that is listed, or removes an entry that is not listed."""
        if any(item in self.entries for item in added):
            raise RulesError(f"Cannot add an existing {self._one} to whitelist")
        if any(item not in self.entries for item in removed):
            raise RulesError(f"Cannot remove an absent {self._one} from whitelist")

    def prepare(self, added: Sequence[T], removed: Sequence[T]) -> Callable[[], None]:
        """Write the changed list to its file; may run in any thread. Returns a function that changes the list in
        memory, to be called on the event loop.

        A file that another program has changed is not overwritten; in this case the change applies only in memory,
        until a restart.
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
        """Return a function that replaces the list. If `problem` is given, the function raises it afterwards."""
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
