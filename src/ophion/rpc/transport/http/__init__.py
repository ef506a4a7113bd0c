"""HTTP/1.1 server.

service         the listening service            policy       application, limits and tokens of all connections
connection      one client                       state        states of a connection and their timeouts
reader          parses requests                  fast_path    recognises request heads that were sent before
response_queue  answers in request order         messages     requests, responses and the bytes of heads
compression     gzip, for clients that accept it
"""
