"""Kubernetes objects as the scheduler sees them: typed, decoded once, no I/O."""
