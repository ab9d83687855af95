"""Simulations in numbers, and how numbers of several compare."""
