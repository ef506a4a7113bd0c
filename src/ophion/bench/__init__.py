"""`ophion bench`: the highest rate of transactions that a network takes without falling behind.

    senders    accounts that send: made here, funded where transactions cost something
    load       one step: so many transactions a second for some seconds, and what became of them
    verdict    whether the network kept up, and what held it back when it did not
    search     which step comes next: more, less, other batches and connections
    report     the outcome for people (text, HTML) and programs (JSON)

    search ──(rate, batch, connections)──> load ──(what became of them)──> verdict ──> search ... ──> report

Transactions are sent on schedule, whether answers come or not, and their time runs from the moment at which they should
have been sent: a node that makes its clients wait does not look faster for it. Nothing here knows Ophion: any Ethereum
node that takes raw transactions can be measured.
"""
