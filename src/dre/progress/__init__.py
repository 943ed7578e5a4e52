"""Progress of long work: what is being done, and its display."""
