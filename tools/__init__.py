"""Programs for developers of Placewright, run in a checkout; in no wheel."""
