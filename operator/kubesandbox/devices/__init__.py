"""The resource.k8s.io group: what its objects must look like, the controller of claims, and a simulated driver."""
