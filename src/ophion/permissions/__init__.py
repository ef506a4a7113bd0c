"""Who may connect and who may transact: rules from files and from contracts, and their reasons.

    options            what the operator asks for
    vocabulary         what entries of a list are called, how they are read and written
    toml_list          one list inside a TOML text: where it is, how it is changed without touching the rest
    rules_file         that list in a file: read, kept in step with memory, written whole or not at all
    allow_list         the list in memory, with its file; all or nothing
    node_rules         nine actions between two nodes, one predicate
    requests           the entries of a request, checked in the documented order
    contract_abi       what rules contracts are asked, and how they answer
    contract_calls     asking one, each question once per block
    account_contract   transactions by contract: part of what makes a block valid
    node_contract      connections by contract, at the head
    contract_genesis   our own contracts (contracts/*.sol) in a genesis file
    contract_changes   what transactions have changed, by what contracts announce
    rules_watch        files that somebody else has changed
    explain            why somebody may or may not, by which rule, since when
    rehearsal          what a change would do, before anybody makes it
    verdicts           how often rules were asked, and what they said
    audit              a record of every change: who, when, what
    permissions        `Permissions`: both lists of a node, reload, and what others ask

A list is one object for accounts and for nodes. The pool asks `Permissions.account_refusal` once per sender and head,
the producer again for each block; both get a sentence that names the rule, or None. Words of the wire
(`whitelist`) stand in texts only; code says allow-list.
"""
