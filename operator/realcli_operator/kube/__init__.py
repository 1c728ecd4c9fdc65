"""The watch layer: everything that touches the Kubernetes API, and the queue that decides when to look."""
