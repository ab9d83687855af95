"""Upstream's own end-to-end tests against Placewright on a real control plane: `make conformance`, docs/conformance.md."""
