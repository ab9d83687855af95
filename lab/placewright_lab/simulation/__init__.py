"""The scheduler without an API server: reading input, evaluating, replaying, comparing."""
