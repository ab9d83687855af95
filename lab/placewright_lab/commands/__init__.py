"""The lab's subcommands of `placewright`, each with `register` and `main`. The entry point group `placewright.commands` names them."""
