"""An embedded Kubernetes API server with simulated kubelets, for the demo, the tests and the benchmarks.

It keeps the promises of the real API that a scheduler and kubectl lean on, in memory, for one process on loopback.
It is not a cluster: there are no controllers beyond garbage collection, and no container ever runs.
"""
