"""Metrics, logs and traces are looked at through what the operator serves."""

from serving.conftest import module_desk, shared, stage

__all__ = ["module_desk", "shared", "stage"]
