"""TLS of every service: certificates when the node starts, handshakes when clients come."""
