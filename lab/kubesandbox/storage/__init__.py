"""Stored objects: writes, reads, lists, watches and selectors."""
