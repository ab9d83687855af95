"""The console on this machine: a file of a cluster, a server on loopback, and the door to it."""
