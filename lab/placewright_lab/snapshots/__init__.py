"""Snapshots and recordings of a live cluster, and the replacement of names in them."""
