"""The console's pages and the state that they show, as plain data. HTTP is in the rooms that serve them."""
