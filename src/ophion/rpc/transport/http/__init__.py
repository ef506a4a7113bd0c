"""HTTP/1.1 server.

service         listens                          policy       what connections share: application, limits, tokens
connection      one client                       state        its states, and how long it has been quiet
reader          parses requests                  fast_path    recognises request heads that were sent before
response_queue  answers in request order         messages     requests, responses and the bytes of heads
compression     gzip, for clients that accept it
"""
