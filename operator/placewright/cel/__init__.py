"""Reads a CEL expression, bounds its cost, and evaluates it. Device selectors and validation rules of definitions share this front end."""
