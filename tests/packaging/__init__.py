"""Tests of what is shipped beside the package."""
