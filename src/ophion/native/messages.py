"""What clients send: outlines of JSON texts, and frames of WebSockets."""

from ophion._native import FrameReader, JsonOutline, json_outline, submission

__all__ = ["FrameReader", "JsonOutline", "json_outline", "submission"]
