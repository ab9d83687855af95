"""Tools that people run beside the operator: simulate, compare, tune, measure, show. None of them runs in a cluster."""
