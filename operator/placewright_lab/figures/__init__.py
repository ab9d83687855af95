"""What a simulation comes to in numbers, and how numbers of several compare."""
