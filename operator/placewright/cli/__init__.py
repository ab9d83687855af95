"""The `placewright` command: one module a subcommand, each with `register` and `main`."""
