"""Objects as they are kept: written, read, listed, watched, selected."""
