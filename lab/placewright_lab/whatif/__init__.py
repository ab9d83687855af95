"""Questions about a cluster under changed profiles, tried on a copy, for the console's pages."""
