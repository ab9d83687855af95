"""`placewright demo`."""
