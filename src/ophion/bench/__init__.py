"""`ophion bench`: measures the highest transaction rate that a network sustains.

    sender_accounts  accounts that send, funded if transactions cost something
    load_step        one step: a rate for some seconds, and its results
    verdict          whether the network sustained a step, and otherwise its bottleneck
    search           chooses the next step: rate, batch size, connections
    report           results as text, HTML and JSON

    search ──(rate, batch, connections)──> load_step ──(results)──> verdict ──> search ... ──> report

Transactions are sent on schedule, whatever the replies. Latency counts from the scheduled time, so a node that delays
its clients does not look faster. Any Ethereum node that accepts raw transactions can be measured.
"""
