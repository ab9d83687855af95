"""Custom resource definitions, and the types that they add at run time."""
