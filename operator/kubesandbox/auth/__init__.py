"""Who somebody is, and what that user may do."""
