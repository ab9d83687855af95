"""Shadows: profiles that decide beside a live profile, on columns of their own, and bind nothing.

A tape has the events of the live cluster and the decisions of the live profile in order (`shadows`, `tape`). Each shadow
replays its tape in a cluster of its own (`shadow`). It decides (`chooser`, `podgroups`) as its budget allows (`pace`), and
compares the decisions (`figures`). docs/shadow.md describes its figures.
"""
