"""Code that several plugins share: tables by row, lookups, and the claims and drivers of volumes."""
