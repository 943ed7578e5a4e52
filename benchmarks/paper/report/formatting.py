"""Formatting of numbers, scores and shades, the same everywhere in the report."""

from __future__ import annotations

import math

from paper.spec import parse_score

TITLES = {
    "nearest_neighbor": "1-NN",
    "neighborhood_hit": "neighborhood hit",
    "neighborhood_hit_standard": "neighborhood hit, self not counted",
    "trustworthiness": "trustworthiness",
    "continuity": "continuity",
    "one_minus_stress": "1 − stress",
    "shepard_goodness": "Shepard goodness",
    "silhouette": "silhouette",
    "centroid_correlation": "centroid correlation",
    "fit_seconds": "fit, s",
    "transform_seconds": "transform, s",
}
PANELS = {"gpu": "GPU", "cpu": "CPU"}
STEPS = 8
# Shades run from 0, worst, over yellow to 8, best; page.css has their colors.
FULL = 0.05  # difference with the full color
SQUARES = {"worse": "🟥", "slightly worse": "🟨", "not worse": "🟩"}


def score_title(score: str) -> str:
    """Return the title of a score.

    >>> score_title("nearest_neighbor#10000")
    '1-NN, first 10,000'
    """
    name, prefix = parse_score(score)
    title = TITLES.get(name, name.replace("_", " "))
    return title if prefix is None else f"{title}, first {prefix:,}"


def is_time(score: str) -> bool:
    """Return whether a score is a number of seconds."""
    return score.endswith("_seconds")


def number(value: float, digits: int = 3) -> str:
    """Format a score without the zero before its point.

    >>> number(0.9738), number(-0.05), number(1.0, 2)
    ('.974', '−.050', '1.00')
    """
    text = f"{abs(value):.{digits}f}"
    text = text[1:] if text.startswith("0.") else text
    return f"−{text}" if value < 0 and float(f"{value:.{digits}f}") != 0 else text


def signed(value: float, digits: int = 3) -> str:
    """Format a difference with its sign, or ± if it rounds to zero.

    >>> signed(0.0114), signed(-0.0114), signed(0.0001)
    ('+.011', '−.011', '±.000')
    """
    if float(f"{value:.{digits}f}") == 0:
        return f"±{number(0.0, digits)}"
    return number(value, digits) if value < 0 else f"+{number(value, digits)}"


def seconds(value: float) -> str:
    """Format seconds with two significant digits below one second, at least three above.

    >>> [seconds(value) for value in (0.0294, 0.671, 3.14159, 83.88, 7455.39)]
    ['0.029', '0.67', '3.14', '83.9', '7,455']
    """
    if 0 < value < 1:
        return f"{value:.{1 - math.floor(math.log10(value))}f}"
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def ratio(here: float, there: float) -> str:
    """Say how many times as fast ``here`` is as ``there``.

    >>> ratio(10.0, 76.0), ratio(3.0, 1.5), ratio(1.01, 1.0)
    ('7.6 × faster', '2.0 × slower', 'as fast')
    """
    if here <= 0 or there <= 0:
        return "not comparable"
    times = max(here / there, there / here)
    if times < 1.05:
        return "as fast"
    return (
        f"{times:.1f} × {'faster' if here < there else 'slower'}"
        if times < 100
        else f"{times:,.0f} × {'faster' if here < there else 'slower'}"
    )


def decimals(values: list[float]) -> int:
    """Return the number of decimals of published values.

    >>> decimals([0.93, 0.9, 1.0]), decimals([0.9333])
    (2, 4)
    """
    return max((len(repr(float(value)).partition(".")[2].rstrip("0")) for value in values), default=2)


def listed(parts: list[str]) -> str:
    """Join with commas and "and".

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}" if parts else "none"


def shade_of_value(value: float, among: list[float], *, smaller_is_better: bool = False) -> int:
    """Return the shade between the worst and the best of a column; times are compared on a logarithmic scale.

    >>> shade_of_value(.9, [.5, .9]), shade_of_value(.5, [.5, .9]), shade_of_value(10, [1, 10, 100], smaller_is_better=True)
    (8, 0, 4)
    """
    if smaller_is_better:
        value, among = -math.log(max(value, 1e-9)), [-math.log(max(each, 1e-9)) for each in among]
    low, high = min(among), max(among)
    return STEPS // 2 if high == low else round(STEPS * (value - low) / (high - low))


def shade_of_difference(difference: float) -> int:
    """Return the shade of a difference.

    >>> shade_of_difference(.2), shade_of_difference(0.), shade_of_difference(-.2)
    (8, 4, 0)
    """
    return round(STEPS * (min(FULL, max(-FULL, difference)) + FULL) / (2 * FULL))


def shade_of_ratio(here: float, there: float) -> int:
    """Return the shade of a ratio of times; ten times as fast has the full color."""
    return shade_of_difference(FULL * math.log10(max(there, 1e-9) / max(here, 1e-9)))


def square(difference: float, tolerance: float) -> str:
    """Return an emoji for Markdown, which has no styles.

    >>> square(.001, .02), square(-.01, .02), square(-.03, .02)
    ('🟩', '🟨', '🟥')
    """
    return SQUARES["not worse" if difference >= 0 else "slightly worse" if difference >= -tolerance else "worse"]
