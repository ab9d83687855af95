"""Readers of files (manifests, traces, golden cases) that make scenarios."""
