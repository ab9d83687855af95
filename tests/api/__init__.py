"""Kubernetes objects as the scheduler sees them."""
