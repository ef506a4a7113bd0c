"""From one message to its answer, without any knowledge of HTTP or WebSocket.

dispatcher      envelopes and notifications; no task for a request that does not wait
fast_path       plain requests that the extension reads or answers
batches         many requests in one message                deadlines      how long a request may wait
request_ids     ids as the answer repeats them              large_requests limits large requests
limits          size of batches and answers, timeouts       error_wording, geth_error_messages   texts of errors
"""
