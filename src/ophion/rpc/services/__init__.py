"""Questions that take more than a lookup: those that outlive a request, and those that run something.

context       what a method may use
blocks        from a block parameter to a view of the chain        rendered    blocks kept as JSON
filters       asked for changes                                    subscriptions  told of changes
log_query     which logs                                           log_search  where a search runs
allowances    what one client may keep                             proofs      of accounts and storage
call_object   what is to be run                                    calls       running it; light_calls: where
simulation    blocks of calls that nobody keeps                    tracing     what happened in a transaction
pool_listing  all transactions that wait                           transaction_request  what a client leaves out
receipts      of one that was just sent; receipt_waits

private_filters, private_logs and private_subscriptions are the same for the states of groups.
"""
