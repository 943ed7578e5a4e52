"""Rows as the network reads them: arrays and streams, checked, scaled and laid out."""
