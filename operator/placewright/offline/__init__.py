"""A cluster made from objects, without an API server: what `explain`, `evaluate` and the golden cases work on."""
