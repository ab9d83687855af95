"""Pods that wait for a node: active, backing off, unschedulable, gated or in flight, and what brings them back."""
