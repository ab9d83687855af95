"""The console of Placewright: its pages, the state that they show, and the server on this machine."""
