"""Free coordinates: every row has its own in the map, without a network, until one follows them."""
