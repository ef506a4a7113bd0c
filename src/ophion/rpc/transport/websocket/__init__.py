"""WebSocket: messages in both directions.

service     listens            policy   what its connections share: who answers, limits, who may ask
connection  one client, from handshake to close
"""
