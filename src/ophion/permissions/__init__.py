"""Permissions for nodes and accounts: rules from files and from contracts, with reasons.

    options            what the operator configures
    entry_codec        names of list entries, and how they are read and written
    toml_list          one list inside a TOML text, edited in place
    allow_list_file    that list in a file, written atomically
    allow_list         the list in memory, with its file
    node_rules         one predicate for nine actions between two nodes
    list_requests      entries of a request, checked in the documented order
    authorities        accounts behind EIP-7702 authorizations
    contract_abi       calls to rules contracts, and their replies
    contract_calls     calls with a cache per block
    account_contract   transactions by contract: part of block validity
    node_contract      connections by contract, at the head
    contract_genesis   our own contracts (contracts/*.sol) in a genesis file
    contract_changes   rule changes made by transactions, read from logs
    file_watcher       files that another program has changed
    explain            which rule permits or refuses, and since when
    dry_run            effects of a change, computed without making it
    decision_counts    counts of decisions, for metrics
    audit              a record of every change: who, when, what
    permissions        `Permissions`: both lists of a node, reload, queries

One list class serves accounts and nodes. The pool calls `Permissions.account_refusal` once per sender and head, block
building again for each block; both get a sentence that names the rule, or None. The wire word `whitelist` occurs in
texts only; code says allow-list.
"""
