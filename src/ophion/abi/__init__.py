"""Contract ABI: types, encoding, and the functions, events and errors of a contract.

codec        encoder and decoder of a type
type_parser  codecs by the names of types
addresses    addresses as text with checksum (EIP-55) and as bytes
interface    functions, events and errors of a contract
artifact     output of compilers
"""
