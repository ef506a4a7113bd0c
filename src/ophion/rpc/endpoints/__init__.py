"""The JSON-RPC services of a node: transport, dispatch and methods put together.

services       builds the services from settings; selects the methods of a port
http           paths of the HTTP port                      websocket     messages and logins of the WebSocket port
method_access  dispatcher and authenticator of one port    health        `/readiness`
landing_page   HTML for browsers
"""
