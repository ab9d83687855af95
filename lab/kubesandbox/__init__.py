"""An embedded Kubernetes API server with simulated kubelets, for the demo, the tests and the benchmarks.

It keeps the promises of the real API that a scheduler and kubectl need. It runs in memory, for one process on loopback. It is no cluster:
it has few controllers, and runs no containers.
"""
