"""Contract ABI: types, encoding, and the functions, events and errors of a contract.

codec        one object per type, compiled from its name
interface    functions, events and errors of a contract
artifact     output of compilers
"""
