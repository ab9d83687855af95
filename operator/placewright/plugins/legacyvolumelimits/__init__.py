"""EBSLimits, GCEPDLimits, AzureDiskLimits, CinderLimits: how many disks of a cloud a node takes that no CSI driver serves."""

from placewright.plugins.legacyvolumelimits.plugin import AzureDiskLimits, CinderLimits, EBSLimits, GCEPDLimits

__all__ = ["AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"]
