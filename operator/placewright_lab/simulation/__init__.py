"""The scheduling cycle without an API server: reading input, evaluating, replaying, comparing."""
