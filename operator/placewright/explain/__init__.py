"""Why a pod is where it is, or on no node: attempts, facts, remedies."""
