"""An embedded Kubernetes API server with simulated kubelets, for the demo, the tests and the benchmarks.

It keeps the promises of the real API on which a scheduler and kubectl rely, in memory, for one process on loopback. It is no cluster: it
has few controllers, and no container ever runs.
"""
