"""DefaultPreemption: when nothing fits, find the node where evicting the least would make room.

`plugin` is the way in; `eligibility` says which pods may preempt, and where; `search` tries enough nodes; `dryrun` finds the victims on
each, by `importance` and `budgets`; `pick` chooses. Nothing here changes the cluster: the scheduler evicts.
"""
