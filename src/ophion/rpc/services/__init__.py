"""Services that RPC methods use: state that outlives a request, and code that executes calls.

context               the services that a method may use
block_reference       resolves a block parameter to a view of the chain
block_json_cache      large blocks as JSON text
filters, subscriptions, log_*, receipt_subscriptions    polling filters, push notifications, log searches
client_quotas         limits of filters and subscriptions per client
call_object, call_execution, call_cost, simulation   decode and execute calls; decide where they run
tracing, account_proofs   traces of transactions; Merkle proofs
pool_listing          all pooled transactions as a stream
hardhat_failures      the errors of Hardhat's node for failed transactions and calls
transaction_request   fills in missing transaction fields
receipts, receipt_waits                         receipts of mined transactions; waits for new ones
"""
