"""TLS of every service: loading certificates, limiting handshakes."""
