"""A comparison as one self-contained page. `page` renders it, and `charts` computes its drawings."""
