"""Are we the active replica, and until when."""
