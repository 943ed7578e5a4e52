"""How many of the rows a picture speaks of, where all of them would take minutes."""

MOST = 10_000  # rows that are scored for a picture


def told(shown: int, n: int) -> str:
    """How many of the rows a picture speaks of; nothing where it is all of them."""
    return "" if shown == n else f"of {shown:,} of {n:,} rows"
