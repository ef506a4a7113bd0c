"""WebSocket: messages in both directions.

service     listens            policy   what its connections share: who answers, limits, who may ask
connection  one client, from handshake to close
handshake   the head with which it begins             framing  what this node sends
"""
