"""From one message to its answer, without any knowledge of HTTP or WebSocket.

dispatcher   envelopes and notifications; no task for a request that does not wait
limits       members of a batch, time and size of an answer
batches      many requests in one message              deadlines    how long a request may wait
request_ids  ids, as they go back                      heavy        requests that take much to work with
sent         a transaction on its way into the pool
"""
