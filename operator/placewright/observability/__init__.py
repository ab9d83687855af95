"""Metrics, logs and traces of a running operator, and the watchdog over its event loop."""
