"""Shadows: profiles that decide beside a live one, on columns of their own, and bind nothing. docs/shadow.md describes their figures.

Each event of the live cluster, and each decision of the live profile, is noted on a tape in order (`shadows`, `tape`). Each shadow replays
its tape in a cluster of its own (`world`, `shadow`), decides (`chooser`, `podgroups`) as its budget allows (`pace`), and compares
(`figures`, `utilisation`).
"""
