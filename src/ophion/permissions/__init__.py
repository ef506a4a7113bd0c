"""Permissions for nodes and accounts: rules from files and from contracts, with reasons.

    options               options of permissioning
    entry_codec           names of list entries, and how they are read and written
    toml_list             edits one list inside a TOML text in place
    allow_list_file       a list in a file, written atomically
    allow_list            a list in memory, with its file
    node_rules            one predicate for nine actions between two nodes
    list_requests         checks the entries of a request in the documented order
    set_code_authorities  accounts that signed EIP-7702 authorizations
    contract_abi          calls to rules contracts, and their replies
    contract_calls        calls with a cache per block
    account_contract      account rules of a contract: part of block validity
    node_contract         node rules of a contract, at the head
    contract_genesis      our own contracts (contracts/*.sol) in a genesis file
    contract_changes      rule changes made by transactions, read from logs
    file_watcher          detects files that another program has changed
    explain               which rule permits or refuses, and since when
    dry_run               effects of a change, computed without making it
    decision_counts       counts of decisions, for metrics
    audit                 a record of every change: who, when, what
    permissions           `Permissions`: both lists of a node, reload, queries

One list class serves accounts and nodes. The pool calls `Permissions.account_refusal` once per sender and head; block
building calls it again for each block. Each call returns a sentence that names the refusing rule, or None. Only texts
for clients use Pantheon's word `whitelist`; code says allow-list.
"""
