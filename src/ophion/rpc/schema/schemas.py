"""JSON schemas of result objects, with the fields and order of json-rpc.md 4 and 7.2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from ophion.rpc.schema.wire_types import object_result, spliced_result

_DATA: Final = {"type": "string", "pattern": "^0x[0-9a-f]*$"}
_QUANTITY: Final = {"type": "string", "pattern": "^0x(0|[1-9a-f][0-9a-f]*)$"}
_ADDRESS: Final = {"type": "string", "pattern": "^0x[0-9a-f]{40}$"}
_HASH: Final = {"type": "string", "pattern": "^0x[0-9a-f]{64}$"}
_BOOLEAN: Final = {"type": "boolean"}
_NUMBER: Final = {"type": "integer"}
_TEXT: Final = {"type": "string"}


def _or_null(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


def _array(items: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _object(required: Mapping[str, Any], optional: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {"type": "object", "properties": {**required, **(optional or {})}, "required": list(required)}


LOG: Final = _object(
    {
        "logIndex": _QUANTITY,
        "removed": _BOOLEAN,
        "blockNumber": _QUANTITY,
        "blockHash": _HASH,
        "transactionHash": _HASH,
        "transactionIndex": _QUANTITY,
        "address": _ADDRESS,
        "data": _DATA,
        "topics": _array(_HASH),
        "blockTimestamp": _QUANTITY,
    }
)
TRANSACTION: Final = _object(
    {
        "blockHash": _or_null(_HASH),
        "blockNumber": _or_null(_QUANTITY),
        "from": _ADDRESS,
        "gas": _QUANTITY,
        "gasPrice": _QUANTITY,
        "hash": _HASH,
        "input": _DATA,
        "nonce": _QUANTITY,
        "to": _or_null(_ADDRESS),
        "transactionIndex": _or_null(_QUANTITY),
        "type": _QUANTITY,
        "value": _QUANTITY,
        "v": _QUANTITY,
        "r": _QUANTITY,
        "s": _QUANTITY,
    },
    {
        "chainId": _QUANTITY,
        "accessList": _array(_object({"address": _ADDRESS, "storageKeys": _array(_HASH)})),
        "maxFeePerGas": _QUANTITY,
        "maxPriorityFeePerGas": _QUANTITY,
        "yParity": _QUANTITY,
        "maxFeePerBlobGas": _QUANTITY,
        "blobVersionedHashes": _array(_HASH),
        "authorizationList": _array({"type": "object"}),
        "blockTimestamp": _or_null(_QUANTITY),
    },
)
BLOCK: Final = _object(
    {
        "number": _QUANTITY,
        "hash": _or_null(_HASH),
        "mixHash": _HASH,
        "parentHash": _HASH,
        "nonce": _or_null(_DATA),
        "sha3Uncles": _HASH,
        "logsBloom": _DATA,
        "transactionsRoot": _HASH,
        "stateRoot": _HASH,
        "receiptsRoot": _HASH,
        "miner": _ADDRESS,
        "difficulty": _QUANTITY,
        "extraData": _DATA,
        "size": _QUANTITY,
        "gasLimit": _QUANTITY,
        "gasUsed": _QUANTITY,
        "timestamp": _QUANTITY,
        "uncles": _array(_HASH),
        "transactions": _array({"anyOf": [_HASH, TRANSACTION]}),
    },
    {
        "totalDifficulty": _QUANTITY,
        "baseFeePerGas": _QUANTITY,
        "withdrawalsRoot": _HASH,
        "withdrawals": _array({"type": "object"}),
        "blobGasUsed": _QUANTITY,
        "excessBlobGas": _QUANTITY,
        "parentBeaconBlockRoot": _HASH,
        "requestsHash": _HASH,
    },
)
RECEIPT: Final = _object(
    {
        "blockHash": _HASH,
        "blockNumber": _QUANTITY,
        "contractAddress": _or_null(_ADDRESS),
        "cumulativeGasUsed": _QUANTITY,
        "effectiveGasPrice": _QUANTITY,
        "from": _ADDRESS,
        "gasUsed": _QUANTITY,
        "logs": _array(LOG),
        "logsBloom": _DATA,
        "to": _or_null(_ADDRESS),
        "transactionHash": _HASH,
        "transactionIndex": _QUANTITY,
        "type": _QUANTITY,
    },
    {
        "status": _QUANTITY,
        "root": _HASH,
        "revertReason": _DATA,
        "blobGasUsed": _QUANTITY,
        "blobGasPrice": _QUANTITY,
    },
)
_POOL_BY_NONCE: Final = {"type": "object", "description": "by decimal nonce", "additionalProperties": TRANSACTION}
_POOL_BY_SENDER: Final = {"type": "object", "description": "by sender", "additionalProperties": _POOL_BY_NONCE}

BlockJson = Annotated[bytes, spliced_result("block", "block object", BLOCK)]
TransactionJson = Annotated[bytes, spliced_result("transaction", "transaction object", TRANSACTION)]
ReceiptJson = Annotated[bytes, spliced_result("receipt", "receipt object", RECEIPT)]
ReceiptsJson = Annotated[bytes, spliced_result("receipts", "receipt objects in order", _array(RECEIPT))]
LOGS_JSON: Final = spliced_result("logs", "log objects", _array(LOG))
FilterChangesJson = Annotated[
    bytes,
    spliced_result("changes", "hashes of blocks or transactions, or log objects", _array({"anyOf": [_HASH, LOG]})),
]
Discovered = Annotated[bytes, spliced_result("document", "OpenRPC document", {"type": "object"})]

AddressList = Annotated[list[str], object_result("addresses", "20-byte addresses", _array(_ADDRESS))]
WorkResult = Annotated[list[str], object_result("work", "seal hash, seed hash and target", _array(_HASH))]
SyncResult = Annotated[
    "dict[str, str] | bool",
    object_result(
        "sync status",
        "progress of synchronisation, or false",
        {
            "anyOf": [
                {"enum": [False]},
                _object({"startingBlock": _QUANTITY, "currentBlock": _QUANTITY, "highestBlock": _QUANTITY}),
            ]
        },
    ),
]
ProofJson = Annotated[
    bytes,
    spliced_result(
        "proof",
        "Merkle proof of an account and some of its storage",
        _object(
            {
                "address": _ADDRESS,
                "accountProof": _array(_DATA),
                "balance": _QUANTITY,
                "codeHash": _HASH,
                "nonce": _QUANTITY,
                "storageHash": _HASH,
                "storageProof": _array(_object({"key": _HASH, "value": _QUANTITY, "proof": _array(_DATA)})),
            }
        ),
    ),
]
ProofBundleResult = Annotated[
    dict[str, Any],
    object_result(
        "proof bundle",
        "sealed header, headers with votes, and Merkle proofs",
        _object(
            {
                "format": {"type": "string"},
                "chainId": _QUANTITY,
                "consensus": {"type": "string"},
                "block": _object({"number": _QUANTITY, "hash": _HASH}),
                "votes": _array(_DATA),
                "header": _DATA,
                "confirmations": _array(_DATA),
                "transaction": {"type": ["object", "null"]},
                "accounts": _array({"type": "object"}),
                "digest": _HASH,
            }
        ),
    ),
]
StorageValuesResult = Annotated[
    dict[str, list[str]],
    object_result(
        "storage values", "32-byte words by address", {"type": "object", "additionalProperties": _array(_HASH)}
    ),
]
FeeHistoryResult = Annotated[
    bytes,
    spliced_result(
        "fee history",
        "base fees, gas used ratios and priority fees",
        _object(
            {
                "oldestBlock": _QUANTITY,
                "baseFeePerGas": _array(_QUANTITY),
                "gasUsedRatio": _array({"type": "number"}),
                "baseFeePerBlobGas": _array(_QUANTITY),
                "blobGasUsedRatio": _array({"type": "number"}),
            },
            {"reward": _array(_array(_QUANTITY))},
        ),
    ),
]
_FORK_CONFIG: Final = _object(
    {
        "activationTime": _NUMBER,
        "blobSchedule": _or_null(_object({"target": _NUMBER, "max": _NUMBER, "baseFeeUpdateFraction": _NUMBER})),
        "chainId": _QUANTITY,
        "forkId": _DATA,
        "precompiles": {"type": "object", "additionalProperties": _ADDRESS},
        "systemContracts": {"type": "object", "additionalProperties": _ADDRESS},
    }
)
ForkConfigResult = Annotated[
    dict[str, Any],
    object_result(
        "fork configuration",
        "current, next and last fork configuration",
        _object({"current": _FORK_CONFIG, "next": _or_null(_FORK_CONFIG), "last": _or_null(_FORK_CONFIG)}),
    ),
]
_RETENTION: Final = _object({"disabled": _BOOLEAN, "oldestBlock": _QUANTITY})
CapabilitiesResult = Annotated[
    dict[str, Any],
    object_result(
        "capabilities",
        "the head, and the oldest block of each kind of data",
        _object(
            {"head": _object({"number": _QUANTITY, "hash": _HASH})}
            | dict.fromkeys(("state", "tx", "logs", "receipts", "blocks", "stateproofs"), _RETENTION)
        ),
    ),
]
AccessListResult = Annotated[
    dict[str, Any],
    object_result(
        "access list",
        "access list of a call, and the gas it uses with that list",
        _object(
            {"accessList": _array(_object({"address": _ADDRESS, "storageKeys": _array(_HASH)})), "gasUsed": _QUANTITY},
            {"error": _TEXT},
        ),
    ),
]
NodeInfoResult = Annotated[
    dict[str, Any],
    object_result(
        "node info",
        "identity, ports and chain of this node",
        _object(
            {"enode": _TEXT, "name": _TEXT, "id": _TEXT, "ip": _TEXT, "ports": {}, "protocols": {}},
            {"listenAddr": _TEXT, "enr": _TEXT},
        ),
    ),
]
PeersResult = Annotated[list[dict[str, Any]], object_result("peers", "peer objects", _array({"type": "object"}))]
MetricsResult = Annotated[
    dict[str, Any], object_result("metrics", "values by category, name and labels", {"type": "object"})
]
ModulesResult = Annotated[
    dict[str, str], object_result("modules", "version by group", {"type": "object", "additionalProperties": _TEXT})
]
ServicesResult = Annotated[
    dict[str, dict[str, str]],
    object_result(
        "services",
        "host and port by service",
        {"type": "object", "additionalProperties": _object({"host": _TEXT, "port": _TEXT})},
    ),
]
ProposalsResult = Annotated[
    dict[str, bool],
    object_result(
        "proposals", "true (add) or false (remove) by address", {"type": "object", "additionalProperties": _BOOLEAN}
    ),
]
SignerMetricsResult = Annotated[
    list[dict[str, str]],
    object_result(
        "signer metrics",
        "blocks by signer",
        _array(_object({"address": _ADDRESS, "proposedBlockCount": _QUANTITY, "lastProposedBlockNumber": _QUANTITY})),
    ),
]
SecondsResult = Annotated[int, object_result("seconds", "number of seconds", _NUMBER)]
_SECONDS: Final = _or_null({"type": "number"})
_BALLOT: Final = _or_null(_object({"needed": _NUMBER, "arrived": _array(_ADDRESS), "missing": _array(_ADDRESS)}))
ConsensusStatusResult = Annotated[
    dict[str, Any],
    object_result(
        "consensus status",
        "state of consensus and missing messages",
        _object(
            {
                "protocol": _TEXT,
                "phase": _TEXT,
                "height": _or_null(_NUMBER),
                "round": _or_null(_NUMBER),
                "validators": _array(_ADDRESS),
                "quorum": _NUMBER,
                "proposer": _or_null(_ADDRESS),
                "proposal": _or_null(_HASH),
                "prepares": _BALLOT,
                "commits": _BALLOT,
                "roundChanges": _BALLOT,
                "silent": _array(_ADDRESS),
                "disconnected": _or_null(_array(_ADDRESS)),
                "preparedRound": _or_null(_NUMBER),
                "roundExpiresInSeconds": _SECONDS,
                "blockDueInSeconds": _SECONDS,
                "quorumReachable": _or_null(_BOOLEAN),
                "explanation": _array(_TEXT),
                "notes": _array(_TEXT),
                "members": _array(
                    _object(
                        {
                            "address": _ADDRESS,
                            "isConnected": _BOOLEAN,
                            "client": _or_null(_TEXT),
                            "lastHeardSecondsAgo": _SECONDS,
                            "isPassedOver": _BOOLEAN,
                            "clockAheadSeconds": _SECONDS,
                        }
                    )
                ),
            }
        ),
    ),
]
PoolStatisticsResult = Annotated[
    dict[str, int],
    object_result(
        "pool statistics",
        "maximum size and number of transactions",
        _object({"maxSize": _NUMBER, "localCount": _NUMBER, "remoteCount": _NUMBER}),
    ),
]
PoolEntriesResult = Annotated[
    list[dict[str, Any]],
    object_result(
        "pool entries",
        "pooled transactions with origin and time of arrival",
        _array(_object({"hash": _HASH, "isReceivedFromLocalSource": _BOOLEAN, "addedToPoolAt": _TEXT})),
    ),
]
PoolStatusResult = Annotated[
    dict[str, str],
    object_result("pool status", "counts", _object({"pending": _QUANTITY, "queued": _QUANTITY})),
]
PoolContentResult = Annotated[
    dict[str, Any],
    object_result(
        "pool content", "pooled transactions", _object({"pending": _POOL_BY_SENDER, "queued": _POOL_BY_SENDER})
    ),
]
SenderContentResult = Annotated[
    dict[str, Any],
    object_result(
        "pool content of a sender",
        "pooled transactions",
        _object({"pending": _POOL_BY_NONCE, "queued": _POOL_BY_NONCE}),
    ),
]
PoolTextResult = Annotated[
    dict[str, Any],
    object_result("pool summary", "pooled transactions as text", _object({"pending": {}, "queued": {}})),
]
FilledResult = Annotated[
    dict[str, Any],
    object_result(
        "filled transaction",
        "the complete transaction, encoded and as an object",
        _object({"raw": _DATA, "tx": {"type": "object"}}),
    ),
]
SignedResult = Annotated[
    dict[str, Any] | str,
    object_result(
        "signed transaction",
        "the complete transaction, encoded and as an object; with the preset anvil only the encoded one",
        {"anyOf": [_object({"raw": _DATA, "tx": {"type": "object"}}), _DATA]},
    ),
]
PENDING_LIST: Final = spliced_result("transactions", "pending transaction objects", _array(TRANSACTION))
