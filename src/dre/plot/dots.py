"""Points of an embedding: dots up to 100,000 rows, an image of their density and mean color beyond."""

from __future__ import annotations

from typing import Any

import numpy as np

from dre.plot.colors import Categorical, Coloring, Continuous, oklab, srgb, to_rgb
from dre.plot.scales import norm_of, value_colormap
from dre.plot.style import Style, add_image, dot_size

Array = np.ndarray[Any, Any]
Extent = tuple[float, float, float, float]
MAX_DOTS = 100_000  # rows: more dots cover each other and take long
RASTERIZED_FROM = 5000  # dots that are pixels also in an .svg or .pdf
PIXELS = (500, 1200)  # along the longer side; few rows get few pixels, which would be empty otherwise
MIN_ALPHA = 0.4  # of a pixel with a single row
INSTALL = f"plots of more than {MAX_DOTS:,} rows need datashader: pip install 'deep-recursive-embedding[plot]'"


def draw_dots(axis: Any, Y: Array, coloring: Coloring, style: Style) -> None:
    """Draw points; those without a label lie beneath the others, which are shuffled so that no class hides another."""
    if len(Y) > MAX_DOTS:
        image, extent = density_image(Y, coloring, style)
        add_image(axis, image, extent, origin="lower")
        return
    order = np.random.default_rng(0).permutation(len(Y))
    labeled = is_labeled(coloring, len(Y))[order]
    inches = float(np.sqrt(axis.get_window_extent().size.prod()) / axis.figure.dpi)
    dots = {"s": dot_size(len(Y), inches), "linewidths": 0, "rasterized": len(Y) > RASTERIZED_FROM}
    dots["alpha"] = float(np.interp(np.log10(max(1, len(Y))), [3, 5], [0.9, 0.55]))
    if not labeled.all():
        axis.scatter(*Y[order[~labeled]].T, color=style.unlabeled, **dots)
    order = order[labeled]
    if isinstance(coloring, Categorical):
        axis.scatter(*Y[order].T, c=np.array(coloring.colors)[coloring.codes[order]], **dots)
    elif isinstance(coloring, Continuous):
        shades = {"c": coloring.values[order], "cmap": value_colormap(style), "norm": norm_of(coloring.ends)}
        axis.scatter(*Y[order].T, **shades, **dots)


def is_labeled(coloring: Coloring, n: int) -> Array:
    """Return (n,) bool; without a coloring no row is labeled."""
    return np.zeros(n, dtype=bool) if coloring is None else coloring.is_labeled


def density_image(Y: Array, coloring: Coloring, style: Style) -> tuple[Array, Extent]:
    """Return an image (height, width, 4), lowest line first, and its (left, right, bottom, top).

    Rows without a label show only where there are no others. Colors are averaged in OKLab, which is perceptually uniform.
    """
    try:
        import datashader
        import pandas
    except ImportError as problem:
        raise ImportError(INSTALL) from problem

    canvas, extent = _canvas(Y, datashader)

    def totals(columns: Any) -> Array:
        """Sum the values of each column per pixel: (height, width, columns)."""
        frame = pandas.DataFrame({"x": Y[:, 0], "y": Y[:, 1], **columns}, copy=False)
        sums = canvas.points(frame, "x", "y", agg=datashader.summary(**{name: datashader.sum(name) for name in columns}))
        return np.stack([np.nan_to_num(sums[name].to_numpy()) for name in columns], axis=-1)

    labeled = is_labeled(coloring, len(Y)).astype(np.float32)
    counts = totals({"labeled": labeled, "all": np.ones(len(Y), np.float32)})
    known, everything = counts[..., 0], counts[..., 1]
    image = np.zeros((*known.shape, 4), np.float32)
    image[..., :3] = to_rgb(style.text if coloring is None else style.unlabeled)
    image[..., 3] = _alpha(everything)
    filled = known > 0
    if isinstance(coloring, Categorical):
        sums = totals(dict(zip("lab", _oklab_of_rows(coloring), strict=True)))
        image[filled, :3] = srgb(sums[filled] / known[filled, None])
    elif isinstance(coloring, Continuous):
        shares = np.nan_to_num(coloring.relative(coloring.values).clip(0, 1))
        means = totals({"value": shares})[filled, 0] / known[filled]
        image[filled, :3] = value_colormap(style)(means)[:, :3]
    if coloring is not None:
        image[filled, 3] = _alpha(known)[filled]
    return image, extent


def _canvas(Y: Array, datashader: Any) -> tuple[Any, Extent]:
    """Return a canvas of square pixels over all points."""
    low, high = Y.min(0).astype(float), Y.max(0).astype(float)
    longer = max(float((high - low).max()), 1e-12)
    side = int(np.clip(1.2 * np.sqrt(len(Y)), *PIXELS))
    shape = np.ceil(side * (high - low) / longer).astype(int).clip(1) + 1
    middle, half = (low + high) / 2, shape * longer / side / 2
    (left, bottom), (right, top) = (middle - half).tolist(), (middle + half).tolist()
    return datashader.Canvas(*shape.tolist(), x_range=(left, right), y_range=(bottom, top)), (left, right, bottom, top)


def _oklab_of_rows(classes: Categorical) -> Array:
    """Return (3, n) OKLab colors; 0 for rows without a label."""
    table = np.vstack([oklab(np.array(classes.colors)), np.zeros((1, 3))]).astype(np.float32)
    return np.ascontiguousarray(table.T[:, classes.codes])  # code -1 is the last entry


def _alpha(counts: Array) -> Array:
    """Map counts to [MIN_ALPHA, 1] by rank, so that every shade is used equally often whatever the counts are."""
    alpha = np.zeros(counts.shape, np.float32)
    filled = counts > 0
    if filled.any():
        distinct, which, times = np.unique(counts[filled], return_inverse=True, return_counts=True)
        ranks = np.cumsum(times) - times[0]
        share = ranks / ranks[-1] if len(distinct) > 1 else np.ones(1)
        alpha[filled] = MIN_ALPHA + (1 - MIN_ALPHA) * share[which]
    return alpha
