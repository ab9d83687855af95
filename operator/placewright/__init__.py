"""Placewright: a Kubernetes scheduler that is an operator."""

__version__ = "0.2.0"
