"""Signing of transactions, messages and typed data.

The node has no accounts of its own. On the development network it may hold the public test keys, for tools that let the
node sign. Tests sign with this package too.

    unsigned_transaction  a transaction before it is signed, and its encodings
    personal_messages     text messages (EIP-191)
    typed_data            typed structures (EIP-712)
    keyring               accounts that can sign
"""
