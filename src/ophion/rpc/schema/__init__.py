"""The language of JSON-RPC: what a method is, and what its parameters and results look like.

registry    @method: declared once; everything else is derived from it
wire_types  scalars, each with decoder, encoder and JSON schema; private_types: those of enclaves
render      domain values as JSON objects              schemas   JSON schemas of these objects
openrpc     the registry as an OpenRPC document and as pages in docs/rpc
"""
