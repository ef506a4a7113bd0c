"""GraphQL: the same chain, one query.

    request -> http -> engine (Rust: check, plan, run over one snapshot) -> answer
                          |  what only the node can do: calls, estimates, transactions to be sent
                          +- asks.py -> the same code as JSON-RPC -> the engine goes on in its snapshot

schema.graphql  the schema, with a description of every type and field
http            paths, methods and forms of requests; where a request runs
asks            calls, estimates and sent transactions, with the policies of JSON-RPC
limits          what requests may ask for, as options of the node
answer_room     memory for long answers
service         the service, ready for the supervisor
page            the query page for browsers: three files, nothing from elsewhere
"""
