"""Kopf handlers: `kopf run -A -m placewright.handlers`, or embedded by `placewright run`.

Importing this package registers the handlers with Kopf.
"""

from placewright.handlers import events, lifecycle

__all__ = ["events", "lifecycle"]
