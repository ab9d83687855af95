"""DomainLimit: limits how many pods of a kind share a node, a rack, a zone or another domain."""
