"""The cluster as columns: nodes, pods on nodes, and the journals of changes."""
