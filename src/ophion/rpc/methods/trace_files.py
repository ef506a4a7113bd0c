"""debug_standardTrace*ToFile: traces of a block as files in the form of EIP-3155."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import orjson
from msgspec import Struct

from ophion.errors import RpcError
from ophion.native.tracing import TraceKind, TraceStream, trace_block
from ophion.native.transactions import Body
from ophion.primitives.header import HashedHeader
from ophion.primitives.hexcodec import data
from ophion.primitives.types import Hash32
from ophion.rpc.errors import BLOCK_NOT_FOUND, SERVER_ERROR_CODE, invalid_params
from ophion.rpc.schema.registry import method
from ophion.rpc.schema.wire_types import HashParam, WireType, decode_boolean, decode_hash, object_result
from ophion.rpc.services.context import RpcContext
from ophion.rpc.services.opcode_numbers import OPCODE_NUMBERS
from ophion.rpc.services.tracing import traced_block, whole_trace

FOLDER: Final = "traces"
MAX_FOLDER_BYTES: Final = 1 << 30
"""Limit of the trace folder in bytes, so that requests do not fill the disk."""


class FileTraceOptions(Struct, frozen=True):
    """Options of `debug_standardTraceBlockToFile` and `debug_standardTraceBadBlockToFile`."""

    only: Hash32 | None = None
    """The transaction to trace. None traces all transactions."""
    memory: bool = True
    stack: bool = True
    storage: bool = False


def _decode(value: object) -> FileTraceOptions:
    if type(value) is not dict:
        raise invalid_params("options: an object is expected")
    return FileTraceOptions(
        None if value.get("txHash") is None else decode_hash(value["txHash"]),
        memory=not _flag(value, "disableMemory", False),
        stack=not _flag(value, "disableStack", False),
        storage=not _flag(value, "disableStorage", True),
    )


def _flag(members: Mapping[str, Any], name: str, default: bool) -> bool:
    value = members.get(name)
    return default if value is None else decode_boolean(value)


FileTraceOptionsParam = Annotated[
    FileTraceOptions,
    WireType(
        "file trace options",
        "object with txHash, disableMemory, disableStack, disableStorage",
        {
            "type": "object",
            "properties": {
                "txHash": {"type": "string"},
                "disableMemory": {"type": "boolean"},
                "disableStack": {"type": "boolean"},
                "disableStorage": {"type": "boolean"},
            },
        },
        _decode,
    ),
]

PathsResult = Annotated[
    list[str], object_result("paths", "paths of files", {"type": "array", "items": {"type": "string"}})
]


@method("debug_standardTraceBlockToFile", needs={"state"})
async def trace_to_files(ctx: RpcContext, hash: HashParam, options: FileTraceOptionsParam | None = None) -> PathsResult:
    """Writes the trace of each transaction of a block to a file (EIP-3155); returns the paths.

    The files are in `traces` of the data path. They are never deleted; above 1 GiB, new traces are refused.
    """
    header = ctx.queries.header(hash)
    if header is None:
        raise BLOCK_NOT_FOUND()
    return await _write(ctx, header, options or FileTraceOptions())


@method("debug_standardTraceBadBlockToFile", needs={"state", "bad_blocks"})
async def trace_bad_block_to_files(
    ctx: RpcContext, hash: HashParam, options: FileTraceOptionsParam | None = None
) -> PathsResult:
    """Writes the trace of each transaction of an invalid block to a file (EIP-3155); returns the paths."""
    assert ctx.bad_blocks is not None
    bad = ctx.bad_blocks.get(hash)
    if bad is None:
        raise BLOCK_NOT_FOUND()
    return await _write(ctx, bad.header, options or FileTraceOptions(), bad.body)


async def _write(
    ctx: RpcContext, header: HashedHeader, options: FileTraceOptions, body: Body | None = None
) -> list[str]:
    kind = TraceKind.standard_logs(
        storage=options.storage, memory=options.memory, stack=options.stack, return_data=True, limit=None, opcodes=None
    )

    def start() -> TraceStream:
        return trace_block(traced_block(ctx, header, body), kind, True, ctx.limits.timeout_s)

    text = await whole_trace(ctx, start)
    if text is None:
        return []
    return await ctx.lanes.trace.run(lambda: _files(Path(ctx.data_path) / FOLDER, header.hash, text, options))


def _files(folder: Path, block: Hash32, text: bytes, options: FileTraceOptions) -> list[str]:
    try:
        folder.mkdir(exist_ok=True)
        used = sum(entry.stat().st_size for entry in os.scandir(folder))
        if used + len(text) > MAX_FOLDER_BYTES:
            raise RpcError(SERVER_ERROR_CODE, f"{folder} holds {used} bytes of traces. Delete some of them.")
        written = []
        for index, entry in enumerate(orjson.loads(text)):
            if options.only is not None and entry["txHash"] != data(options.only):
                continue
            path = _free_name(folder, f"block_{data(block)[:10]}-{index}-{entry['txHash'][:10]}")
            path.write_bytes(b"".join(line + b"\n" for line in _lines(entry["result"])))
            written.append(str(path))
    except OSError as error:
        raise RpcError(SERVER_ERROR_CODE, f"cannot write traces to {folder}: {error.strerror}") from None
    return written


def _free_name(folder: Path, name: str) -> Path:
    number = 0
    while (path := folder / f"{name}-{number}").exists():
        number += 1
    return path


def _lines(result: Mapping[str, Any]) -> Iterator[bytes]:
    for row in result["structLogs"]:
        line = {
            "pc": row["pc"],
            "op": OPCODE_NUMBERS.get(row["op"]),
            "gas": hex(row["gas"]),
            "gasCost": hex(row["gasCost"]),
        }
        memory = row.get("memory")
        if memory is not None:
            line["memory"] = "0x" + "".join(word.removeprefix("0x") for word in memory)
            line["memSize"] = 32 * len(memory)
        line |= {key: row[key] for key in ("stack", "storage", "returnData", "depth", "refund", "error") if key in row}
        yield orjson.dumps(line | {"opName": row["op"]})
    yield orjson.dumps({"output": result["returnValue"].removeprefix("0x"), "gasUsed": hex(result["gas"])})
