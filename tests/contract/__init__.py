"""What Placewright expects of any Kubernetes API server: run on the sandbox, with `--real` on a real one, or on KUBECONFIG_E2E's."""
