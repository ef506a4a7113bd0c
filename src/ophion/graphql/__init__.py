"""GraphQL over HTTP, on the same data as JSON-RPC.

    request -> http -> engine (Rust: validate, plan, run on one snapshot) -> response
                          |  requests that need the node: calls, estimates, transactions to send
                          +- node_requests -> the code that serves JSON-RPC -> the engine resumes on its snapshot

schema.graphql   the schema, with a description of every type and field
http             paths, methods and request formats; decides where a request runs
node_requests    calls, estimates and sent transactions, with the rules of JSON-RPC
limits           limits of requests, as options
response_buffer  memory limit for long responses
service          the service, run by the supervisor
query_editor     the query editor for browsers
"""
