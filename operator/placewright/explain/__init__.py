"""Explains why a pod is on its node, or on none: attempts, facts, remedies."""
