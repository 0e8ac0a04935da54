"""The Kubernetes API server: kubeconfig, credentials, requests, and streams into pods."""
