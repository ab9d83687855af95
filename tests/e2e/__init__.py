"""Tests that need a real API server: run with `pytest --real`, that is `make e2e`."""
