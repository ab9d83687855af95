"""Victims and their order: rules that DefaultPreemption and the preemption for whole groups share (a room of upstream's, too)."""
