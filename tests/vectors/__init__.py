"""What kube-scheduler decided, case by case."""
