"""Pods that wait for a node: active, backing off, unschedulable, gated or in flight, and the events that bring them back."""
