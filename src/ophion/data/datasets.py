"""Every dataset: columns, types, documentation. Datasets that cryo also has use cryo's names and types."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ophion.data.dataset_types import Column, ColumnType, Dataset, Source
from ophion.errors import CommandError

_U32, _U64, _HASH, _ADDRESS = ColumnType.U32, ColumnType.U64, ColumnType.HASH, ColumnType.ADDRESS
_BINARY, _TEXT, _BOOL = ColumnType.BINARY, ColumnType.TEXT, ColumnType.BOOL


def _wide(name: str, doc: str) -> Iterator[Column]:
    """Yield the four columns of a 256-bit number, one for each representation."""
    yield Column(f"{name}_binary", _HASH, f"{doc}; 32 bytes, big-endian.", form="binary")
    yield Column(f"{name}_string", _TEXT, f"{doc}; decimal digits.", form="string")
    yield Column(f"{name}_f64", ColumnType.F64, f"{doc}; rounded.", form="f64")
    yield Column(f"{name}_decimal", ColumnType.DECIMAL, f"{doc}; decimal(38), null from 10^38 on.", form="decimal")


_NUMBER = Column("block_number", _U32, "Number of the block.", repeats=True)
_BLOCK_HASH = Column("block_hash", _HASH, "Hash of the block.", repeats=True)
_TIME = Column("timestamp", _U32, "Time of the block, in seconds since 1970; null above 32 bits.", repeats=True)
_TX_INDEX = Column("transaction_index", _U32, "Position of the transaction in the block.", repeats=True)
_TX_HASH = Column("transaction_hash", _HASH, "Hash of the transaction.")
_LOG_INDEX = Column("log_index", _U32, "Position of the log in the block.", repeats=True)
_CHAIN = Column("chain_id", _U64, "Chain id of the network.", repeats=True)
_ACCOUNT = Column("address", _ADDRESS, "Account that changes.", repeats=True)

BLOCKS: Final = Dataset(
    "blocks",
    "One row per canonical block.",
    Source.STORED,
    (
        Column("block_hash", _HASH, "Hash of the block."),
        Column("parent_hash", _HASH, "Hash of the block before it."),
        Column("author", _ADDRESS, "Beneficiary in the header.", repeats=True),
        Column("state_root", _HASH, "Root of the state after the block."),
        Column("transactions_root", _HASH, "Root of the transactions."),
        Column("receipts_root", _HASH, "Root of the receipts."),
        Column("block_number", _U32, "Number of the block."),
        Column("gas_used", _U64, "Gas that the transactions have used."),
        Column("gas_limit", _U64, "Gas that the transactions may use.", repeats=True),
        Column("extra_data", _BINARY, "Extra data of the header, with the seals of a proof-of-authority network."),
        Column("logs_bloom", ColumnType.BLOOM, "Bloom filter of the logs."),
        Column("timestamp", _U32, "Time of the block, in seconds since 1970; null above 32 bits."),
        *_wide("total_difficulty", "Difficulty of the chain up to the block"),
        Column("size", _U32, "Bytes of the block in RLP."),
        Column("n_transactions", _U32, "Number of transactions."),
        Column("base_fee_per_gas", _U64, "Base fee; null before London.", repeats=True),
        _CHAIN,
    ),
)

TRANSACTIONS: Final = Dataset(
    "transactions",
    "One row per transaction, with the fields of its receipt.",
    Source.STORED,
    (
        _NUMBER,
        Column("transaction_index", _U64, "Position of the transaction in the block.", repeats=True),
        _TX_HASH,
        Column("nonce", _U64, "Nonce of the sender.", repeats=True),
        Column("from_address", _ADDRESS, "Sender.", repeats=True),
        Column("to_address", _ADDRESS, "Recipient; null for a creation.", repeats=True),
        *_wide("value", "Wei that are transferred"),
        Column("input", _BINARY, "Input data."),
        Column("gas_limit", _U64, "Gas that the transaction may use.", repeats=True),
        Column("gas_used", _U64, "Gas that the transaction has used.", repeats=True),
        Column("gas_price", _U64, "Wei per gas that were paid; null above 64 bits.", repeats=True),
        Column("effective_gas_price", _U64, "The same, by its name in receipts.", repeats=True),
        Column("transaction_type", _U32, "Type of the transaction.", repeats=True),
        Column("max_priority_fee_per_gas", _U64, "Maximum tip, from type 2 on.", repeats=True),
        Column("max_fee_per_gas", _U64, "Maximum price, from type 2 on.", repeats=True),
        Column("success", _BOOL, "Whether it succeeded; null before Byzantium."),
        Column("contract_address", _ADDRESS, "Contract of a creation."),
        Column("revert_reason", _BINARY, "Output of a reverted transaction, where the node stores it."),
        Column("n_logs", _U32, "Number of logs.", repeats=True),
        Column("n_input_bytes", _U32, "Bytes of the input.", repeats=True),
        Column("n_input_zero_bytes", _U32, "Zero bytes of the input.", repeats=True),
        Column("n_input_nonzero_bytes", _U32, "Other bytes of the input.", repeats=True),
        Column("n_rlp_bytes", _U32, "Bytes of the signed transaction.", repeats=True),
        _BLOCK_HASH,
        _TIME,
        _CHAIN,
    ),
    filters=("from", "recipient"),
)

_LOG_PLACE = (_NUMBER, _BLOCK_HASH, _TIME, _TX_INDEX, _LOG_INDEX, _TX_HASH)

LOGS: Final = Dataset(
    "logs",
    "One row per log.",
    Source.STORED,
    (
        *_LOG_PLACE,
        Column("address", _ADDRESS, "Contract that wrote the log.", repeats=True),
        Column("topic0", _HASH, "First topic: the event, unless it is anonymous.", repeats=True),
        Column("topic1", _HASH, "Second topic.", repeats=True),
        Column("topic2", _HASH, "Third topic.", repeats=True),
        Column("topic3", _HASH, "Fourth topic.", repeats=True),
        Column("data", _BINARY, "Data of the log."),
        Column("n_data_bytes", _U32, "Bytes of the data.", repeats=True),
        _CHAIN,
    ),
    filters=("address", "topic"),
)

_TOKEN_PARTIES = (
    Column("erc20", _ADDRESS, "Token contract.", repeats=True),
    Column("from_address", _ADDRESS, "Previous owner.", repeats=True),
    Column("to_address", _ADDRESS, "New owner.", repeats=True),
)

ERC20_TRANSFERS: Final = Dataset(
    "erc20_transfers",
    "One row per Transfer event of an ERC-20 token.",
    Source.STORED,
    (*_LOG_PLACE, *_TOKEN_PARTIES, *_wide("value", "Amount"), _CHAIN),
    filters=("address", "topic"),
)

ERC721_TRANSFERS: Final = Dataset(
    "erc721_transfers",
    "One row per Transfer event of an ERC-721 token.",
    Source.STORED,
    (*_LOG_PLACE, *_TOKEN_PARTIES, *_wide("token_id", "Token"), _CHAIN),
    filters=("address", "topic"),
)

TRACES: Final = Dataset(
    "traces",
    "One row per call, creation, self-destruct and reward: the entries of trace_block.",
    Source.EXECUTED,
    (
        Column("action_from", _ADDRESS, "Caller; author of a reward.", repeats=True),
        Column("action_to", _ADDRESS, "Callee; heir of a self-destruct.", repeats=True),
        Column("action_value", _TEXT, "Wei, as decimal digits.", repeats=True),
        Column("action_gas", _U32, "Gas of the call; null above 32 bits.", repeats=True),
        Column("action_input", _BINARY, "Input of a call."),
        Column("action_call_type", _TEXT, "call, call_code, delegate_call or static_call.", repeats=True),
        Column("action_init", _BINARY, "Init code of a creation."),
        Column("action_reward_type", _TEXT, "reward or uncle.", repeats=True),
        Column("action_type", _TEXT, "call, create, suicide or reward.", repeats=True),
        Column("result_gas_used", _U32, "Gas used; null with an error, and above 32 bits.", repeats=True),
        Column("result_output", _BINARY, "Output of a call.", repeats=True),
        Column("result_code", _BINARY, "Code of a new contract."),
        Column("result_address", _ADDRESS, "Address of a new contract."),
        Column("trace_address", _TEXT, "Position in the call tree: indexes joined by underscores.", repeats=True),
        Column("subtraces", _U32, "Number of calls below.", repeats=True),
        _TX_INDEX,
        _TX_HASH,
        _NUMBER,
        _BLOCK_HASH,
        Column("error", _TEXT, "Error of the call.", repeats=True),
        _CHAIN,
    ),
    filters=("from", "recipient"),
)

NATIVE_TRANSFERS: Final = Dataset(
    "native_transfers",
    "One row per transfer of wei: calls, creations, self-destructs and rewards, also of value 0.",
    Source.EXECUTED,
    (
        _NUMBER,
        _BLOCK_HASH,
        _TX_INDEX,
        Column("transfer_index", _U32, "Position of the transfer in the block."),
        _TX_HASH,
        Column("from_address", _ADDRESS, "Sender; zero for a reward.", repeats=True),
        Column("to_address", _ADDRESS, "Recipient; zero for a failed creation.", repeats=True),
        *_wide("value", "Wei"),
        _CHAIN,
    ),
    filters=("from", "recipient"),
)

CONTRACTS: Final = Dataset(
    "contracts",
    "One row per created contract.",
    Source.EXECUTED,
    (
        _NUMBER,
        _BLOCK_HASH,
        Column("create_index", _U32, "Position of the creation in the block."),
        _TX_HASH,
        Column("contract_address", _ADDRESS, "The new contract."),
        Column("deployer", _ADDRESS, "Sender of the transaction.", repeats=True),
        Column("factory", _ADDRESS, "Account that executed the creation.", repeats=True),
        Column("init_code", _BINARY, "Init code."),
        Column("code", _BINARY, "Deployed code."),
        Column("init_code_hash", _HASH, "Keccak-256 of the init code.", repeats=True),
        Column("n_init_code_bytes", _U32, "Bytes of the init code."),
        Column("n_code_bytes", _U32, "Bytes of the code."),
        Column("code_hash", _HASH, "Keccak-256 of the code.", repeats=True),
        _CHAIN,
    ),
    filters=("from", "recipient"),
)

ADDRESS_APPEARANCES: Final = Dataset(
    "address_appearances",
    "One row per role of an address in a transaction.",
    Source.EXECUTED,
    (
        _NUMBER,
        _BLOCK_HASH,
        _TX_HASH,
        Column("address", _ADDRESS, "The address.", repeats=True),
        Column("relationship", _TEXT, "Its role, such as tx_from, call_to, factory, erc20_transfer_to.", repeats=True),
        _CHAIN,
    ),
    filters=("address",),
)


def _diffs(name: str, what: str, *columns: Column) -> Dataset:
    place = (_NUMBER, _TX_INDEX, _TX_HASH, _ACCOUNT)
    doc = f"One row per {what} that a transaction changes."
    return Dataset(name, doc, Source.EXECUTED, (*place, *columns, _CHAIN), filters=("address",))


BALANCE_DIFFS: Final = _diffs(
    "balance_diffs", "balance", *_wide("from_value", "Wei before"), *_wide("to_value", "Wei after")
)
NONCE_DIFFS: Final = _diffs(
    "nonce_diffs", "nonce", Column("from_value", _U64, "Nonce before."), Column("to_value", _U64, "Nonce after.")
)
CODE_DIFFS: Final = _diffs(
    "code_diffs", "code", Column("from_value", _BINARY, "Code before."), Column("to_value", _BINARY, "Code after.")
)
STORAGE_DIFFS: Final = _diffs(
    "storage_diffs",
    "storage slot",
    Column("slot", _HASH, "Slot."),
    Column("from_value", _HASH, "Value before."),
    Column("to_value", _HASH, "Value after."),
)

VALIDATORS: Final = Dataset(
    "validators",
    "One row per validator and block: who proposed and sealed it, and its vote.",
    Source.SEALED,
    (
        _NUMBER,
        _BLOCK_HASH,
        _TIME,
        Column("round", _U32, "Round in which the block was decided; null under Clique.", repeats=True),
        Column(
            "address", _ADDRESS, "Validator; where a contract names validators, only those that sealed.", repeats=True
        ),
        Column("is_proposer", _BOOL, "Whether it proposed the block; under Clique, whether it signed the block."),
        Column("has_sealed", _BOOL, "Whether the header has its seal."),
        Column("vote_address", _ADDRESS, "Account that the proposer votes on; null in other rows.", repeats=True),
        Column("vote_adds", _BOOL, "Whether the vote adds the account; null without a vote."),
        Column("n_validators", _U32, "Number of validators of the block.", repeats=True),
        _CHAIN,
    ),
    filters=("address",),
)

PRIVATE_TRANSACTIONS: Final = Dataset(
    "private_transactions",
    "One row per private transaction that this node can read. Exported only by name, and only with --rpc.",
    Source.MEMBER,
    (
        _NUMBER,
        _BLOCK_HASH,
        _TIME,
        Column("transaction_index", _U32, "Position of the marker in the block."),
        Column("transaction_hash", _HASH, "Hash of the marker, the public transaction."),
        Column("private_hash", _HASH, "Hash of the private transaction; null where the payload is deleted."),
        Column("privacy_group_id", _TEXT, "Group, in base64.", repeats=True),
        Column("private_from", _TEXT, "Key of the sending member, in base64.", repeats=True),
        Column("private_for", _TEXT, "Keys of the recipients, in base64, joined by commas; null for a group.", True),
        Column("restriction", _TEXT, "restricted or unrestricted.", repeats=True),
        Column("nonce", _U64, "Private nonce of the sender."),
        Column("from_address", _ADDRESS, "Sender.", repeats=True),
        Column("to_address", _ADDRESS, "Recipient; null for a creation.", repeats=True),
        *_wide("value", "Wei that are named; private transactions transfer none"),
        Column("input", _BINARY, "Input data."),
        Column("gas_limit", _U64, "Gas that the transaction may use.", repeats=True),
        Column("gas_price", _U64, "Wei per gas that are named; null above 64 bits.", repeats=True),
        Column("status", _U32, "1 after success, 0 after a failure, 2 if it could not be executed.", repeats=True),
        Column("contract_address", _ADDRESS, "Contract of a creation."),
        Column("output", _BINARY, "Returned data."),
        Column("revert_reason", _BINARY, "Output of a reverted transaction, where the node stores it."),
        Column("n_logs", _U32, "Number of private logs.", repeats=True),
        _CHAIN,
    ),
    filters=("from", "recipient"),
)

ALL: Final[dict[str, Dataset]] = {
    dataset.name: dataset
    for dataset in (
        BLOCKS,
        TRANSACTIONS,
        LOGS,
        ERC20_TRANSFERS,
        ERC721_TRANSFERS,
        TRACES,
        NATIVE_TRANSFERS,
        CONTRACTS,
        ADDRESS_APPEARANCES,
        BALANCE_DIFFS,
        NONCE_DIFFS,
        CODE_DIFFS,
        STORAGE_DIFFS,
        VALIDATORS,
        PRIVATE_TRANSACTIONS,
    )
}

GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "state_diffs": ("balance_diffs", "nonce_diffs", "code_diffs", "storage_diffs"),
}
"""Names of groups, each with the names of its datasets."""

DECODED: Final = {"events": "event", "calls": "function"}
"""Group names of the datasets decoded by ABI, each with its kind of ABI entry."""


def dataset_named(name: str) -> Dataset:
    """Return the dataset with this name. For an unknown name, raises `CommandError` with the known names."""
    found = ALL.get(name)
    if found is None:
        known = ", ".join([*ALL, *GROUPS, *DECODED])
        raise CommandError(f"There is no dataset '{name}'. Known datasets: {known}")
    return found


def datasets_named(names: tuple[str, ...]) -> tuple[Dataset, ...]:
    """Return the named datasets in order, without duplicates. The name of a group selects all its datasets."""
    expanded = dict.fromkeys(one for name in names for one in GROUPS.get(name, (name,)))
    return tuple(dataset_named(name) for name in expanded)
