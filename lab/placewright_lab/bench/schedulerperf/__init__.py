"""Upstream's own benchmark, scheduler_perf: its configurations read as they are, and run on a real API server."""
