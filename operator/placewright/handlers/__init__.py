"""Kopf handlers: `kopf run -A -m placewright.handlers`, or embedded by `placewright run`.

Importing this package registers the handlers with Kopf.
"""

from placewright.handlers import lifecycle, watching

__all__ = ["lifecycle", "watching"]
