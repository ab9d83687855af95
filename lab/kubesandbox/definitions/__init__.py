"""Types that come at run time, with their definitions."""
