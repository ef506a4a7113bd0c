"""Requests and answers in the forms of Anvil and Hardhat's node, for `ophion dev --preset`.

anvil_forms           requests that only Anvil accepts
anvil_refusals        requests that Anvil and Hardhat's node refuse
hardhat_forms         answers and errors in the form of Hardhat's node
"""
