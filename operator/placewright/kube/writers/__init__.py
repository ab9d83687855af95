"""The scheduler's writes to the API server: Bindings, statuses, claims, volumes, evictions, events."""
