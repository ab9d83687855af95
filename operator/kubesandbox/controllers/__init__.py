"""Programs that act on objects by themselves: kubelets, the garbage collector, the controllers of volumes and disruption budgets."""
