"""Rust parsers of client input: common JSON-RPC requests, the structure of JSON texts, WebSocket frames."""

from ophion._native import FrameReader, JsonOutline, PlainRequests, json_outline

__all__ = ["FrameReader", "JsonOutline", "PlainRequests", "json_outline"]
