"""Who may be evicted, and in which order: what DefaultPreemption and the preemption for whole groups share (a room of upstream's, too)."""
