"""The slow comparison of what the API server lists with what the queue and the cluster's columns hold."""
