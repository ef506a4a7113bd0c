"""Signing: transactions of every type, messages and typed data, with keys that are at hand.

The node holds no keys of its own. On the development network it may hold the published ones of its accounts, for tools
that leave signing to the node; tests sign here too.

unsigned     a transaction before it is signed, and its encodings
messages     texts (EIP-191)                    typed_data   structures (EIP-712)
keyring      which accounts can sign
"""
