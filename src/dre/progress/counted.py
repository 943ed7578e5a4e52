"""Numbers with their noun, for messages."""

from __future__ import annotations


def counted(n: int, noun: str, verb: str = "") -> str:
    """Return a number with its noun in the singular or the plural, and a verb that agrees.

    Parameters
    ----------
    n : int
    noun : str
        In the singular, of a regular plural.
    verb : str, default=""
        Of the plural.

    Examples
    --------
    >>> counted(1, "row"), counted(1200, "row"), counted(1, "row", "have"), counted(2, "row", "have")
    ('1 row', '1,200 rows', '1 row has', '2 rows have')
    """
    words = f"{n:,} {noun}{'' if n == 1 else 's'}"
    return f"{words} {agreeing(n, verb)}" if verb else words


def agreeing(n: int, verb: str) -> str:
    """Return a verb of the plural, or its form for a single thing.

    >>> [agreeing(1, verb) for verb in ("have", "are", "lack")], agreeing(2, "lack")
    (['has', 'is', 'lacks'], 'lack')
    """
    return IRREGULAR.get(verb, f"{verb}s") if n == 1 else verb


IRREGULAR = {"have": "has", "are": "is", "were": "was"}
