"""What several plugins have in common: topology domains, bases of filters, memories, and the claims and drivers of volumes."""
