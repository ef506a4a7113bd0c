"""`ophion bench`: measures the highest transaction rate that a network sustains.

    sender_accounts  accounts that send, funded where transactions cost something
    load_step        one step: a rate for some seconds, and its results
    verdict          whether the network kept up, and its bottleneck otherwise
    search           chooses the next step: rate, batch size, connections
    report           results as text, HTML and JSON

    search ──(rate, batch, connections)──> load_step ──(results)──> verdict ──> search ... ──> report

Transactions are sent on schedule, whatever the replies. Latency counts from the scheduled time, so a node that makes
its clients wait does not look faster. Any Ethereum node that accepts raw transactions can be measured.
"""
