"""The cluster as columns: nodes, pods on nodes, and what changed since when."""
