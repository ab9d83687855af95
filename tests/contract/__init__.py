"""What Placewright expects of any Kubernetes API server, run on the sandbox or, with KUBECONFIG_E2E, on a real one."""
