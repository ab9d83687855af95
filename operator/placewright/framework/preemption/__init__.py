"""Who may be evicted, and in which order: what DefaultPreemption and the preemption for whole groups share (as upstream's package of that name)."""
