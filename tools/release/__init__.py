"""The files of a release, built from a checkout: `make release`."""
