"""Requests over HTTP, and how objects, types and documents are shown there."""
