"""The checks of `placewright doctor`: a module for each part of an installation, and one for their common parts."""
