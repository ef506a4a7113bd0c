"""A transaction that somebody sends: from the request to the answer one object, which the pool tells what became of it.

Thousands of them come in a second. A future, its listener and what they hold together would cost more than the rest of
the way.
"""

from __future__ import annotations

from collections.abc import Callable

from ophion.errors import PoolRejected
from ophion.pool.events import Admission, taken
from ophion.rpc.schema.wire_types import encode_data
from ophion.rpc.transport.replies import SUCCESS, Complete, Pending


class Sent(Pending[Complete], kw_only=True, eq=False):
    """The answer that comes later, and the arrival (pool/intake.py) it is the answer to."""

    raws: tuple[bytes, ...]
    name: str
    id_text: bytes
    failed: Callable[[BaseException, str, bytes], Complete]
    """How an error is told to whoever has called a method of this name with this id."""
    is_local: bool = True

    def answer(self, admissions: list[Admission]) -> None:
        try:
            hash = taken(admissions)
        except PoolRejected as error:
            self.fail(error)
        else:
            self.resolve(SUCCESS % (self.id_text, encode_data(hash)))

    def fail(self, error: Exception) -> None:
        if not self.is_done:
            self.resolve(self.failed(error, self.name, self.id_text))
