"""Pictures to files: PNG, SVG or PDF, there whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dre.atomic import atomic_write
from dre.io.writers import check_writable

SUFFIXES = (".png", ".svg", ".pdf")
DPI = 200  # of a PNG, and of what is pixels in the others


def save(figure: Any, path: str | Path, *, force: bool = False) -> None:
    """Write a figure, or that of axes; the name says the format. What is there is written over only by force.

    >>> import tempfile
    >>> from dre.plot import scatter
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(scatter([[0, 0], [1, 1]]), f"{folder}/map.png")
    """
    from matplotlib import rc_context

    suffix = check_writable(path, SUFFIXES, force=force)
    uniform_like = figure.figure if hasattr(figure, "figure") else figure
    with atomic_write(path) as part, rc_context({"pdf.fonttype": 42}):  # letters, and no outlines: they can be searched
        uniform_like.savefig(part, dpi=DPI, format=suffix[1:])
