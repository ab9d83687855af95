"""The plugin contract, and the columns it is kept in."""
