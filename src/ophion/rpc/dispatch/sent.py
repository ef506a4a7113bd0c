"""A transaction that somebody sends: from the request to the answer one object, which the pool tells what became of it.

Thousands of them come in a second. A future, its listener and what they hold together would cost more than the rest of
the way.
"""

from __future__ import annotations

from collections.abc import Callable

from ophion.pool.events import Admission, Admitted
from ophion.rpc.language.wire_types import encode_data
from ophion.rpc.transport.replies import Complete, Pending


class Sent(Pending[Complete], kw_only=True, eq=False):
    """The answer that comes later, and the arrival (pool/intake.py) it is the answer to."""

    raws: tuple[bytes, ...]
    id_text: bytes
    failed: Callable[[BaseException, bytes], Complete]
    """How an error is told to whoever has asked with an id."""
    is_local: bool = True

    def answer(self, admissions: list[Admission]) -> None:
        (admission,) = admissions
        if isinstance(admission, Admitted):
            result = encode_data(admission.hash)
            self.resolve(b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (self.id_text, result))
        else:
            self.fail(admission.error)

    def fail(self, error: Exception) -> None:
        if not self.is_done:
            self.resolve(self.failed(error, self.id_text))
