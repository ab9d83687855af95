"""Clusters made from manifests, without an API server, for `explain`, `evaluate` and the golden cases."""
