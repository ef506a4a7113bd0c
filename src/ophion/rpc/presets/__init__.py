"""Requests and answers in the form of the nodes that the presets of `ophion dev` stand for.

anvil_forms           requests that Anvil takes; texts of Anvil
anvil_refusals        requests that Anvil and Hardhat's node refuse
hardhat_forms         answers and errors in the form of Hardhat's node
"""
