"""The handlers that Kopf calls, for `kopf run -A -m placewright.handlers` and for `placewright run`, which embeds Kopf.

Importing this package registers them in Kopf's default registry.
"""

from placewright.handlers import events, lifecycle

__all__ = ["events", "lifecycle"]
