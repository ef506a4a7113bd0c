"""All expected errors of Ophion, as one tree.

    OphionError                 an error with a message of one line
    ├── ConfigError             options, environment or configuration file; holds every problem found
    ├── ExtensionError          the native extension is missing or does not match the Python sources
    ├── CommandError            a subcommand cannot do what it was asked
    ├── GenesisError            a genesis file that is malformed, or that differs from the stored one
    ├── DecodeError             malformed bytes or text; names the position
    ├── AbiError                a value that does not fit its ABI type, or data that is not a valid encoding
    ├── KeyFileError            a private key or public key file that cannot be used
    ├── SignerUnavailable       a security module that does not sign
    ├── StorageError            the database or the data directory: missing, locked, full, newer, damaged
    │   ├── MissingStateError   the state of a root is not in the database
    │   └── CheckpointError     a checkpoint that cannot be used
    ├── BlockNotDownloaded      the body and the receipts of a block are not downloaded yet
    ├── SnapSyncError           a node cannot start by snap synchronisation
    ├── ForkSourceError         the node from which a development node forks does not answer
    ├── StateNotFetched         a value that is not fetched from the forked chain yet
    ├── InvalidBlock            a block breaks a rule of the chain
    │   └── InvalidHeader       the header of a block breaks a rule
    ├── UnknownParent           a block whose parent is not in the database
    │   └── StateDropped        a block whose parent's state is pruned
    ├── ProofError              a proof that cannot be created, or that does not hold
    ├── PoolRejected            a transaction that the pool refuses
    ├── RulesError              permissions that cannot be read or changed
    ├── PeerMisbehaved          a peer broke the protocol and is disconnected (peers/disconnect_reasons.py)
    ├── EnclaveError            the privacy enclave refused or did not answer
    ├── PrivacyRefused          a private transaction or request that is refused
    └── RpcError                a reply with a JSON-RPC error code

An error builds its message from its fields, so that command line, log and JSON-RPC show the same sentence. If
`transient` is set, the same input may be valid later, so the input is not recorded as invalid. Any other exception that
reaches the command line or a supervisor is a bug.
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
    """All problems of options, environment and configuration file, found before the start."""

    def __init__(self, problems: str | Sequence[str]) -> None:
        self.problems: tuple[str, ...] = (problems,) if isinstance(problems, str) else tuple(problems)
        super().__init__("\n".join(self.problems))


class ExtensionError(OphionError):
    """The native extension is missing or does not match the Python sources."""


class CommandError(OphionError):
    """A subcommand cannot do what the user requested."""


class GenesisError(OphionError):
    """A genesis cannot be used. `place` is the JSON path of the invalid key, if known."""

    def __init__(self, message: str, place: str | None = None) -> None:
        self.place = place
        super().__init__(message)


class DecodeError(OphionError):
    """Bytes or text are malformed."""

    def __init__(self, message: str, place: str | None = None) -> None:
        self.place = place
        super().__init__(f"{place}: {message}" if place else message)


class AbiError(OphionError):
    """A value does not fit its ABI type, or data is not a valid encoding."""


class KeyFileError(OphionError):
    """A key file cannot be read, written or parsed."""


class SignerUnavailable(OphionError):
    """A security module did not sign, for example because the module is removed, busy or locked."""

    transient = True


class StorageError(OphionError):
    """The data directory or the database cannot be used."""


class MissingStateError(StorageError):
    """The state of this root is not in the database."""


class CheckpointError(StorageError):
    """A checkpoint cannot be fetched, or does not belong to this network."""


class BlockNotDownloaded(OphionError):
    """The body and the receipts of a block are not downloaded yet. Its header is known."""


class SnapSyncError(OphionError):
    """Raised when a node cannot start by snap synchronisation."""


class ForkSourceError(OphionError):
    """The node from which a development node forks does not answer, or answers with an error."""


class StateNotFetched(OphionError):
    """A read needs a value that is not fetched from the forked chain yet, and the calling thread must not block."""


class InvalidBlock(OphionError):
    """A block breaks a rule.

    `rule` is a short stable name such as `state root`; `got` and `expected` are shown as text. `at` returns a copy with
    number and hash of the block.
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
        """Return a copy of the error with number and hash of the block. Fields that are already set stay unchanged."""
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
    """The header of a block breaks a rule."""

    kind = "header"


class UnknownParent(OphionError):
    """A block cannot be checked, because its parent is unknown."""

    transient = True

    def __init__(self, number: int, parent_hash: bytes, head: int) -> None:
        self.number = number
        self.parent_hash = parent_hash
        self.head = head
        super().__init__(f"Block {number} does not connect to the existing chain. Current chain head {head}")


class StateDropped(UnknownParent):
    """A block cannot be executed, because its parent's state is pruned."""

    def __init__(self, number: int, parent_hash: bytes, head: int) -> None:
        super().__init__(number, parent_hash, head)
        self.message = f"Block {number} begins a branch too far back: the state before it was dropped (--state-history)"


class ProofError(OphionError):
    """A proof cannot be created, or does not hold."""


class PoolRejected(OphionError):
    """The pool rejects a transaction. `reason` is a stable name, which the RPC interface maps to a code.

    `message` is a fixed text for each reason; `detail` holds the values of this transaction.
    """

    def __init__(self, reason: str, message: str, transient: bool = False, detail: str | None = None) -> None:
        self.reason = reason
        self.detail = detail
        self.transient = transient
        super().__init__(message)


class RulesError(OphionError):
    """Permissions cannot be read or changed. `message` is a fixed text; `detail` holds the particulars."""

    def __init__(self, message: str, detail: str | None = None) -> None:
        self.detail = detail
        super().__init__(message)


class EnclaveError(OphionError):
    """The privacy enclave refused or did not answer.

    `code` is the enclave's own error code, such as `NodeMissingPeerUrl`, and None for other failures. The RPC interface
    returns the code to the client.
    """

    def __init__(self, message: str, code: str | None) -> None:
        self.code = code
        super().__init__(message)


class PrivacyRefused(OphionError):
    """A private transaction or request is refused. The specification fixes the message text."""


class RpcError(OphionError):
    """An error that a JSON-RPC client receives: code, message and data."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        self.code = code
        self.data = data
        super().__init__(message)


def show(value: object) -> str:
    """Format a field of an error: bytes as hex, other values with `str`."""
    return f"0x{value.hex()}" if isinstance(value, bytes) else str(value)
