"""The forms of patches, how lists and maps merge, and who owns which field."""
