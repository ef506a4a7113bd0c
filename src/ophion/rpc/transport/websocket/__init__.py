"""WebSocket server: messages in both directions.

service     listens                                    policy   what connections share: message handler, limits, tokens
connection  one client, from handshake to close        upgrade  WebSocket clients on the port of an HTTP service
handshake   the opening HTTP request                   framing  frames that this node sends
"""
