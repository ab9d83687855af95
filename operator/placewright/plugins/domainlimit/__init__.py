"""DomainLimit: limits how many pods of a kind share a node, a rack, a zone or another domain of a node label."""

from placewright.plugins.domainlimit.args import DomainLimitArgs
from placewright.plugins.domainlimit.plugin import DomainLimit

__all__ = ["DomainLimit", "DomainLimitArgs"]
