"""Shadows: profiles that decide beside a live one, on columns of their own, and bind nothing. docs/shadow.md tells what comes of it.

What happens to the live cluster, and each decision of the live profile, is noted on a tape in the order in which it happened (`shadows`);
each shadow replays its tape in a cluster of its own (`world`, `shadow`), decides (`choosing`, `groups`) as its budget allows
(`pace`), and compares (`figures`, `utilisation`).
"""
