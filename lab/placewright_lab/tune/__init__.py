"""The search for weights of a profile."""
