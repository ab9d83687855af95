"""Files that the console on this machine shows, and the pages that the lab adds to it."""
