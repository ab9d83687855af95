"""Measurements of decisions, bindings, preemption and profile reloads. `placewright bench` runs them."""
