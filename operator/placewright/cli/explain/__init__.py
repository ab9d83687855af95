"""The sources of `placewright explain`: an operator, or the API server's objects."""
