"""An enclave outside: the node as a client of Orion, of Tessera in orion mode, or of another Ophion (privacy.md 5).

client     `RemoteEnclave`: the operations of `Enclave` as requests
dialects   what a refusal means, in both dialects
http       requests over kept connections, with or without TLS, bounded in time and bytes
"""
