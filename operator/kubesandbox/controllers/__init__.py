"""What acts on objects by itself: kubelets, the garbage collector, the controllers of volumes and disruption budgets."""
