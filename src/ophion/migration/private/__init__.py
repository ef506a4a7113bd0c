"""Moves private payloads of Tessera and Orion into the embedded enclave, and compares private states.

    orion_formats      payloads and groups as Orion encodes them; `enclave.tessera` has the formats of Tessera
    enclave_databases  databases and exports of Tessera and Orion
    payload_import     seals payloads in the form of Ophion, under their old keys
    comparison         receipts, code and nonces of the old and the new node, by group

Tessera, Orion and Ophion encrypt payloads in the same way, and the key of a payload is the hash of its ciphertext. So
the ciphertext stays the same, and marker transactions on the chain still refer to it.
"""
