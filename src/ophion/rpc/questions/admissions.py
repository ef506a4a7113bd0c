"""What became of a transaction that was sent, as an answer."""

from __future__ import annotations

from typing import Annotated

from ophion.pool.events import Admission, Admitted
from ophion.primitives.types import Hash32
from ophion.rpc.language.wire_types import Wire, encode_data


def admitted_hash(admissions: list[Admission]) -> Hash32:
    """The hash of the one transaction that was taken; raises the error of one that was not."""
    (admission,) = admissions
    if isinstance(admission, Admitted):
        return admission.hash
    raise admission.error


AdmissionResult = Annotated[
    list[Admission],
    Wire(
        "hash",
        "32-byte hash",
        {"type": "string", "pattern": "^0x[0-9a-f]{64}$"},
        encode=lambda admissions: encode_data(admitted_hash(admissions)),
    ),
]
