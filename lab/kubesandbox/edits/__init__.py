"""The forms of patches, the merging of lists and maps, and the owners of fields."""
