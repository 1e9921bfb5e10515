"""As much of a cluster as a rolling update needs: pods, probes, endpoints that change late, and a controller."""
