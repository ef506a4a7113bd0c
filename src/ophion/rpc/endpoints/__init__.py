"""The ports of JSON-RPC: transport, dispatch and methods put together for a node.

services   settings in, services out; which methods a port offers
http       what the paths of the HTTP port mean           websocket  messages and logins of the WebSocket port
guarded    dispatcher and gate of one port                health     `/readiness`
"""
