"""The command `placewright console`."""
