"""The resource.k8s.io group: the rules for its objects, the controller of claims, and a simulated driver."""
