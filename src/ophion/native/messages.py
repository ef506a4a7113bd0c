"""Client input: plain requests, JSON outlines, WebSocket frames."""

from ophion._native import FrameReader, JsonOutline, PlainRequests, json_outline

__all__ = ["FrameReader", "JsonOutline", "PlainRequests", "json_outline"]
