"""Signing of transactions, messages and typed data.

The node has no accounts of its own. On the development network it may hold the public test keys, for tools that leave
signing to the node; tests sign here too.

    unsigned    a transaction before it is signed, and its encodings
    messages    texts (EIP-191)
    typed_data  structures (EIP-712)
    keyring     accounts that can sign
"""
