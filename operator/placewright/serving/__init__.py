"""What is served over HTTP: health, metrics, debug pages, explanations."""
