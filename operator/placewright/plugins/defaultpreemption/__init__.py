"""DefaultPreemption: when nothing fits, find the node where evicting the least would make room.

`plugin` is the way in; `dryrun` tries enough nodes and finds the victims on each, and `boundtrial` tries nodes where groups would have to
leave as a whole; `candidates` says which is the cheapest. Nothing here changes the cluster: the scheduler evicts. Which pods may preempt,
who leaves with whom, who matters more and what budgets protect stands in `framework.preemption`, because the preemption for whole groups
asks that, too.
"""
