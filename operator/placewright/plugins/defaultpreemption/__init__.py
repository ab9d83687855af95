"""DefaultPreemption: when nothing fits, find the node where evicting the least would make room.

`plugin` is the way in; `eligibility` says which pods may preempt, and where; `search` tries enough nodes; `dryrun` finds the victims on
each, by `importance` and `budgets`; `together` says who leaves with whom, and `boundtrial` tries nodes where groups would have to leave
as a whole; `pick` chooses. Nothing here changes the cluster: the scheduler evicts.
"""
