"""Every expected error of Ophion, as one tree.

    OphionError                 something a caller can be told in one line
    ├── ConfigError             options, environment or configuration file; holds every problem found
    ├── ExtensionError          the compiled half of Ophion is missing, or another one than the Python half needs
    ├── CommandError            a subcommand cannot do what it was asked
    ├── GenesisError            a genesis file that is malformed, or that differs from the stored one
    ├── DecodeError             bytes or text that are not what they should be; names the place
    ├── KeyFileError            a private key or public key file that cannot be used
    ├── StorageError            the database or the data directory: missing, locked, full, newer, damaged
    │   └── MissingStateError   the state of a root is not in the database
    ├── InvalidBlock            a block breaks a rule of the chain
    │   └── InvalidHeader       ... and its header alone shows it
    ├── UnknownParent           a block whose parent is not in the database
    │   └── StateDropped        ... or whose parent's state is no longer kept
    ├── PoolRejected            a transaction the pool does not take
    ├── RulesError              permissions that cannot be read or changed as asked
    ├── PeerMisbehaved          a peer broke the protocol and is disconnected (peers/disconnect_reasons.py)
    ├── EnclaveError            the privacy enclave refused or did not answer
    ├── PrivacyRefused          a private transaction or question that cannot be taken
    └── RpcError                an answer with a JSON-RPC error code

An error carries fields and builds its message once, so that whoever shows it (command line, log, JSON-RPC) shows
the same sentence. `transient` says that the same input may be fine later: such an input is not remembered as bad.
Anything outside this tree that reaches the command line or a supervisor is a bug.
"""

from __future__ import annotations

from collections.abc import Sequence


class OphionError(Exception):
    """Base of every expected error."""

    transient = False

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return self.message


class ConfigError(OphionError):
    """All that is wrong with options, environment and configuration file, found before anything starts."""

    def __init__(self, problems: str | Sequence[str]) -> None:
        self.problems: tuple[str, ...] = (problems,) if isinstance(problems, str) else tuple(problems)
        super().__init__("\n".join(self.problems))


class ExtensionError(OphionError):
    """The extension cannot be used with the Python sources beside it."""


class CommandError(OphionError):
    """A subcommand cannot do what it was asked to do."""


class GenesisError(OphionError):
    """A genesis that cannot be used; `place` is the member path when one is to blame."""

    def __init__(self, message: str, place: str | None = None) -> None:
        self.place = place
        super().__init__(message)


class DecodeError(OphionError):
    """Input that does not have the promised form."""

    def __init__(self, message: str, place: str | None = None) -> None:
        self.place = place
        super().__init__(f"{place}: {message}" if place else message)


class KeyFileError(OphionError):
    """A key file that cannot be read, written or understood."""


class StorageError(OphionError):
    """The data directory or the database cannot be used."""


class MissingStateError(StorageError):
    """The state of this root is not in the database."""


class InvalidBlock(OphionError):
    """A block that breaks a rule.

    `rule` is a short stable name such as `state root`; `got` and `expected` are shown as text. `number` and `hash`
    are filled in by whoever knows them, which is why `at` makes a copy with both.
    """

    kind = "block"

    def __init__(
        self,
        rule: str,
        got: object = None,
        expected: object = None,
        number: int | None = None,
        hash: bytes | None = None,
        transient: bool = False,
    ) -> None:
        self.rule = rule
        self.got = got
        self.expected = expected
        self.number = number
        self.hash = hash
        self.transient = transient
        super().__init__(self._sentence())

    def at(self, number: int, hash: bytes) -> InvalidBlock:
        """The same error with the block it belongs to, keeping what is known already."""
        return type(self)(
            self.rule,
            self.got,
            self.expected,
            self.number if self.number is not None else number,
            self.hash if self.hash is not None else hash,
            self.transient,
        )

    def _sentence(self) -> str:
        where = f"Invalid {self.kind}"
        if self.number is not None:
            where += f" at block number {self.number}"
        if self.hash is not None:
            where += f" (0x{self.hash.hex()})"
        detail = self.rule
        if self.expected is not None:
            detail += f": got {show(self.got)}, expected {show(self.expected)}"
        elif self.got is not None:
            detail += f": {show(self.got)}"
        return f"{where}: {detail}"


class InvalidHeader(InvalidBlock):
    """A block whose header alone shows that it breaks a rule."""

    kind = "header"


class UnknownParent(OphionError):
    """A block that cannot be judged because its parent is not here."""

    transient = True

    def __init__(self, number: int, parent_hash: bytes, head: int) -> None:
        self.number = number
        self.parent_hash = parent_hash
        self.head = head
        super().__init__(f"Block {number} does not connect to the existing chain. Current chain head {head}")


class StateDropped(UnknownParent):
    """A block on one so old that its state is no longer kept: it cannot be executed."""

    def __init__(self, number: int, parent_hash: bytes, head: int) -> None:
        super().__init__(number, parent_hash, head)
        self.message = f"Block {number} begins a branch too far back: the state before it was dropped (--state-history)"


class PoolRejected(OphionError):
    """A transaction the pool does not take; `reason` is a stable name that the interface maps to a code.

    `detail` says more than the message, whose text is fixed.
    """

    def __init__(self, reason: str, message: str, transient: bool = False, detail: str | None = None) -> None:
        self.reason = reason
        self.detail = detail
        self.transient = transient
        super().__init__(message)


class RulesError(OphionError):
    """Permissions that cannot be read, or not be changed as asked; `detail` says more than the fixed text."""

    def __init__(self, message: str, detail: str | None = None) -> None:
        self.detail = detail
        super().__init__(message)


class EnclaveError(OphionError):
    """The privacy enclave refused or did not answer.

    `code` is the enclave's own word for it (`NodeMissingPeerUrl`), which the interface passes on; None for a failure
    that has no word, and is told as trouble with the enclave.
    """

    def __init__(self, message: str, code: str | None) -> None:
        self.code = code
        super().__init__(message)


class PrivacyRefused(OphionError):
    """A private transaction that is not taken, or a private question that cannot be answered; the text is fixed."""


class RpcError(OphionError):
    """A JSON-RPC error answer."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        self.code = code
        self.data = data
        super().__init__(message)


def show(value: object) -> str:
    """A field of an error as text: bytes as hex, the rest as it prints."""
    return f"0x{value.hex()}" if isinstance(value, bytes) else str(value)
