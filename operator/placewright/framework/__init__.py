"""The plugin contract, the registry of plugins and one profile's runtime."""
