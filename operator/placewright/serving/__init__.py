"""The HTTP endpoints: health, metrics, debug pages, explanations."""
