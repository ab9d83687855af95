"""PodTopologySpread: spreads pods of a kind evenly over the domains of a node label."""
