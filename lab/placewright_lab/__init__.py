"""Tools that people run beside the operator: simulate, compare, tune, measure, show. Nothing here runs in a cluster."""
