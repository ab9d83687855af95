"""DynamicResources: devices for pods that claim them."""

from placewright.plugins.dynamicresources.plugin import DynamicResources

__all__ = ["DynamicResources"]
