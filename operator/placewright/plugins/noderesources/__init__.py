"""NodeResourcesFit and NodeResourcesBalancedAllocation: whether a pod fits, and how well."""
