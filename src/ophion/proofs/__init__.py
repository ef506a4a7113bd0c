"""Proofs for auditors: a block with its seals, the validator sets before it, and Merkle proofs of its contents.

merkle               Merkle Patricia proofs: building for ordered tries, verification for all tries
bundle               the JSON file and its canonical form
vote_headers         the headers that prove how the validator set changed
builder              a bundle from the database
trust_anchor         what the auditor trusts: a genesis file, or a later checkpoint
header_verification  verification of header seals, starting from the trusted validators
verify               verification of a bundle
"""
