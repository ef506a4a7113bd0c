"""Rust functions that trace transactions and return the traces as streams of JSON text."""

from ophion._native import (
    CallRefused,
    TimedOut,
    TracedBlock,
    TraceKind,
    TraceStream,
    trace_block,
    trace_call,
    trace_calls,
    trace_flat,
    trace_signed,
    trace_transaction,
)

__all__ = [
    "CallRefused",
    "TimedOut",
    "TraceKind",
    "TraceStream",
    "TracedBlock",
    "trace_block",
    "trace_call",
    "trace_calls",
    "trace_flat",
    "trace_signed",
    "trace_transaction",
]
