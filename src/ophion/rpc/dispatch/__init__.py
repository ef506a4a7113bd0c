"""Answers JSON-RPC messages, independent of HTTP and WebSocket.

dispatcher      envelopes and notifications; creates a task only for a request that waits
fast_path       plain requests that the Rust extension reads or answers
batches         many requests in one message                deadlines      how long a request may wait
request_ids     ids as the answer repeats them              large_requests limits large requests
limits          size of batches and answers, timeouts
error_wording, geth_error_messages, anvil_error_messages    texts of errors
"""
