"""DefaultPreemption: when nothing fits, finds the node where evicting the least makes room.

`plugin` is the entry. `dryrun` tries enough nodes and finds the victims on each. `candidates` has the trials of single nodes, and picks the
cheapest node. Nothing here changes the cluster, because the scheduler evicts.

`framework.preemption` has the rules, because the preemption for whole groups needs them, too. They say which pods may preempt, which pods
leave together, which pods matter more, and what budgets protect.
"""
