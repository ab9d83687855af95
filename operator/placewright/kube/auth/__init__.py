"""Who we are to an API server: kubeconfig, service account, client certificates, proxies."""
