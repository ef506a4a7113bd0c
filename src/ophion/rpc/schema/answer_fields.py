"""The choice of fields in answers. A separate small module, because the options of a node import it."""

from __future__ import annotations

from enum import Enum


class AnswerFields(Enum):
    """Values of `--rpc-answer-fields`."""

    CURRENT = "current"
    BESU = "besu"
    GETH = "geth"
    GOQUORUM = "goquorum"
