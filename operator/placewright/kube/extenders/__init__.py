"""Scheduler extenders over HTTP, as kube-scheduler calls them."""
