"""The console of a running operator, which hands it a view of its scheduler."""
