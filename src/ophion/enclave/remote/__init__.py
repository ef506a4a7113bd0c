"""A remote enclave: the node as a client of Orion, of Tessera in orion mode, or of another Ophion (privacy.md 5).

client           `RemoteEnclave`: the operations of `Enclave` as requests
error_responses  error responses of Orion and Tessera
http             HTTP client with persistent connections, with or without TLS, bounded in time and bytes
"""
