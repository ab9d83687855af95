"""InterPodAffinity: pods attract and repel each other by label."""
