"""HTTP: requests, and the presentation of objects, types and documents."""
