"""The one front end of CEL: reads an expression, bounds what it costs, and evaluates it. Devices and rules of definitions share it."""
