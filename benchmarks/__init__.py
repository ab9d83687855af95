"""Benchmarks by which developers of Placewright compare it with itself, and the figures that its documents quote. In no wheel."""
