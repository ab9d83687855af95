"""The controllers: kubelets, the garbage collector, and the controllers of volumes and disruption budgets."""
