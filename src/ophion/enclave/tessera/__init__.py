"""Data formats of the enclave Tessera, for members of a network that have not moved to Ophion yet.

    fields       the binary encoding: every field after its length       cbor        the encoding of newer versions
    payloads     an encrypted payload with the boxes of its recipients    groups      a privacy group
    party_info   the keys and URLs that an enclave tells the others       sealed_payloads  the form of Ophion

`enclave_http` speaks the protocol; `migration.private` reads the same formats from the databases of old enclaves.
"""
