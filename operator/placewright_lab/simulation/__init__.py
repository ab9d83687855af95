"""The same cycle without an API server: reading input, evaluating, replaying, comparing."""
