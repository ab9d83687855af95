"""The figures of a simulation, and the comparison of several."""
