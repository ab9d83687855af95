"""A comparison as one page that needs nothing else: `page` renders it, `charts` lays its drawings out."""
