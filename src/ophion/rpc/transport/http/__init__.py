"""HTTP/1.1 as this node speaks it.

service     listens            policy   what its connections share: application, limits, who may ask
connection  one client         reader   from bytes to a request
answers     in the order of requests     wire     requests, responses and the bytes of heads
compression gzip, for clients that ask for it
"""
