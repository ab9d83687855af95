"""Groups of pods are decided together, all members or none, and bound behind one barrier."""
