"""JSON-RPC methods as declarations, and the wire format of their parameters and results.

registry      all methods by name; the import surface of method files
method        @method: declares a handler; names, schemas and documents are derived from it
signature     wire types of a handler's parameters and result; caller: the client as handlers see it
compiler      a signature compiled into a function that decodes and calls
method_table  methods bound to the services and groups of one transport
wire_types    scalars, each with decoder, encoder and JSON schema; private_types: scalars of enclaves
render        domain values as JSON objects              schemas   JSON schemas of these objects
openrpc       the registry as an OpenRPC document and as pages in docs/rpc
"""
