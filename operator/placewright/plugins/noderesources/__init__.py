"""NodeResourcesFit and NodeResourcesBalancedAllocation: does it fit, and how well."""
