"""DefaultPreemption: when nothing fits, finds the node where evicting the least makes room.

`plugin` is the entry. `dryrun` tries enough nodes and finds the victims on each. `boundtrial` tries nodes where groups would leave as a
whole. `candidates` picks the cheapest node. Nothing here changes the cluster: the scheduler evicts. `framework.preemption`
has the rules, because the preemption for whole groups needs them, too: which pods may preempt, who leaves with whom, who matters more, and
what budgets protect.
"""
