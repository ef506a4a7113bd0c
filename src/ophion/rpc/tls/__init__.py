"""TLS of all services: loads certificates and limits handshakes."""
