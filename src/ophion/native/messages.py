"""What clients send: usual requests, outlines of JSON texts, and frames of WebSockets."""

from ophion._native import FrameReader, JsonOutline, json_outline, usual_request

__all__ = ["FrameReader", "JsonOutline", "json_outline", "usual_request"]
