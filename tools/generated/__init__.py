"""Prints the files that are made from code, for `make generate`."""
