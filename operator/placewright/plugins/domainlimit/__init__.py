"""DomainLimit: at most so many pods of a kind on a node, in a rack, in a zone, or in any other domain of a node label."""

from placewright.plugins.domainlimit.args import DomainLimitArgs
from placewright.plugins.domainlimit.plugin import DomainLimit

__all__ = ["DomainLimit", "DomainLimitArgs"]
