"""A real Kubernetes control plane as child processes: etcd and kube-apiserver on loopback, and a simulated kubelet."""
