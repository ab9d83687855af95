"""Where `placewright explain` gets its answer from: an operator, or the API server's objects."""
