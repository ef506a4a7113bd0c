"""The values of `--rpc-answer-fields`. The module is small, because every start of a node imports it."""

from enum import Enum


class AnswerFields(Enum):
    """Values of `--rpc-answer-fields`: the client whose response fields the node uses."""

    CURRENT = "current"
    BESU = "besu"
    GETH = "geth"
    GOQUORUM = "goquorum"
