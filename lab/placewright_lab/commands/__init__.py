"""The lab's subcommands of `placewright`, found by the entry point group `placewright.commands`: each with `register` and `main`."""
