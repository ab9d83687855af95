"""The scheduler: the scheduling cycle, the binding cycle and the loop. `ports` has its interfaces to the outside."""
