"""Credentials and address of an API server: kubeconfig, service account, client certificates, proxies."""
