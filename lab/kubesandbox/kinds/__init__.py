"""Kubernetes' own types: their fields, defaults and rules, and what admission does to them."""
