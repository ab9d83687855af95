"""Health, metrics and debug pages over HTTP."""
