"""HTTP ports: sockets, TLS and certificates, limits of connections, and the table of served paths. Knows nothing of the scheduler."""
