"""The programs of a control plane, built from Debian's packages."""
