"""Kubernetes' own types: their fields, defaults and rules, and their admission."""
