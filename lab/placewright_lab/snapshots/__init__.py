"""Snapshots and recordings of a live cluster, and how names in them are replaced."""
