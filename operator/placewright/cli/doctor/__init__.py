"""What `placewright doctor` looks at: one module for each part of an installation, and what its checks have in common."""
