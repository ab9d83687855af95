"""The scheduler itself: the cycle, the binding cycle and the loop, talking to the world through ports."""
