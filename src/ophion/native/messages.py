"""What clients send: usual requests, outlines of JSON texts, and frames of WebSockets."""

from ophion._native import FrameReader, JsonOutline, UsualRequests, json_outline

__all__ = ["FrameReader", "JsonOutline", "UsualRequests", "json_outline"]
