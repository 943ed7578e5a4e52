"""Saving of plots as PNG, SVG or PDF: the file is complete or absent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dre.atomic import atomic_write
from dre.io.writers import check_writable

SUFFIXES = (".png", ".svg", ".pdf")
DPI = 200  # of a PNG, and of the rasterized parts of the others


def save(figure: Any, path: str | Path, *, force: bool = False) -> None:
    """Write a figure to a file.

    Parameters
    ----------
    figure : matplotlib Figure or Axes
    path : str or Path
        Its suffix chooses the format: .png, .svg or .pdf.
    force : bool, default=False
        Overwrite an existing file.

    Examples
    --------
    >>> import tempfile
    >>> from dre.plot import scatter
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(scatter([[0, 0], [1, 1]]), f"{folder}/map.png")
    """
    from matplotlib import rc_context

    suffix = check_writable(path, SUFFIXES, force=force)
    with atomic_write(path) as part, rc_context({"pdf.fonttype": 42}):  # TrueType: text stays searchable
        (figure.figure if hasattr(figure, "figure") else figure).savefig(part, dpi=DPI, format=suffix[1:])
