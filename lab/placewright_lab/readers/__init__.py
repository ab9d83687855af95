"""From files (manifests, traces, golden cases) to scenarios."""
