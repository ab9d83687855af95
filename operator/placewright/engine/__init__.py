"""One scheduler put together around one API server, and what keeps it in step with that server."""
