"""Free coordinates: every row has a place of its own in the map, without a network, until one follows them."""
