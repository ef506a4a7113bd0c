"""The enclave: payloads that only their participants can read, and the groups they belong to.

contract     what the rest of the node knows of an enclave, inside or outside: `Enclave`, `Group`, `Received`
group_ids    ids of groups by their members, as every enclave computes them
"""
