"""Decides whether this replica is the active one, and until when."""
