"""DefaultPreemption: when nothing fits, find the node where evicting the least would make room.

`plugin` is the way in; `eligibility` says which pods may preempt; `dryrun` tries one node; `search` tries enough of them; `budgets` counts
disruption budgets; `pick` chooses. Nothing here changes the cluster: the scheduler evicts.
"""
