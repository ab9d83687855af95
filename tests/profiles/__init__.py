"""Tests of the profiles room."""
