"""WebSocket server: requests, answers and notifications.

service     the listening service                      policy   message handler, limits and tokens of all connections
connection  one client, from handshake to close        upgrade  WebSocket clients on the port of an HTTP service
handshake   the opening HTTP request                   framing  frames that this node sends
"""
