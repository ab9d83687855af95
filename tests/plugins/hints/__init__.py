"""Queueing hints, row by row of kube-scheduler's table: which event brings back a pod that a plugin rejected, and which does not."""
