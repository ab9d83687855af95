"""A simulation in numbers, and the comparison of several."""
