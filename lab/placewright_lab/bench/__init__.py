"""How fast pods are decided, bound and preempted for, and how fast profiles are reloaded: what `placewright bench` measures."""
