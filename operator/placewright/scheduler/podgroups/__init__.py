"""Groups of pods: decided in one go, all or none, and bound behind one barrier."""
