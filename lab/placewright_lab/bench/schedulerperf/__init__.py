"""Upstream's own benchmark, scheduler_perf: its unchanged configurations on a real API server."""
