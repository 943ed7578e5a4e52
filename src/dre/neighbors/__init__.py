"""Who is near whom: distances in blocks, exact neighbours, and the search that chooses between exact and approximate."""
