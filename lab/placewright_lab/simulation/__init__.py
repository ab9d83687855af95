"""The scheduler without an API server: input, evaluation and simulations."""
