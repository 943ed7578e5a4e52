"""Nearest neighbors: blocks of distances, exact search, and the choice between exact and approximate search."""
