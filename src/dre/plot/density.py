"""A map of more rows than can be drawn one by one: an image of their mean colours, the stronger the more rows there are."""

from __future__ import annotations

from typing import Any

import numpy as np

from dre.plot.colouring import Classes, Scale
from dre.plot.look import Style, scale_colours
from dre.plot.palette import class_colours, oklab, rgb, srgb

Array = np.ndarray[Any, Any]
Extent = tuple[float, float, float, float]
PIXELS = (500, 1200)  # along the longer side: the fewer for few rows, or most of them were empty
FAINTEST = 0.4  # what a single row shows of its colour
INSTALL = "maps of so many rows are drawn by datashader: pip install 'deep-recursive-embedding[plot]'"


def density(places: Array, coloured: Classes | Scale | None, style: Style) -> tuple[Array, Extent]:
    """An image (height, width, 4), its first line the lowest, and where it lies: left, right, bottom, top.

    Rows without a label show only where there are no others. Colours are mixed in OKLab, as the eye would.
    """
    try:
        import datashader
        import pandas
    except ImportError as problem:
        raise ImportError(INSTALL) from problem

    canvas, extent = _canvas(places, datashader)

    def total(of: Any) -> Array:
        """(height, width) for each column: how many rows fall there, or the sum of their values."""
        frame = pandas.DataFrame({"x": places[:, 0], "y": places[:, 1], **of}, copy=False)
        found = canvas.points(frame, "x", "y", agg=datashader.summary(**{name: datashader.sum(name) for name in of}))
        return np.stack([np.nan_to_num(found[name].to_numpy()) for name in of], axis=-1)

    labelled = _weights(coloured, len(places))
    counts = total({"labelled": labelled, "all": np.ones(len(places), np.float32)})
    known, everything = counts[..., 0], counts[..., 1]
    image = np.zeros((*known.shape, 4), np.float32)
    image[..., :3] = rgb(style.ink if coloured is None else style.faint)
    image[..., 3] = _strength(everything)
    there = known > 0
    if isinstance(coloured, Classes):
        sums = total(dict(zip("lab", _colours_of_rows(coloured), strict=True)))
        image[there, :3] = srgb(sums[there] / known[there, None])
    elif isinstance(coloured, Scale):
        means = total({"value": np.nan_to_num(coloured.values)})[there, 0] / known[there]
        image[there, :3] = _on_the_scale(means, coloured, style)
    if coloured is not None:
        image[there, 3] = _strength(known)[there]
    return image, extent


def _canvas(places: Array, datashader: Any) -> tuple[Any, Extent]:
    """Square pixels over all places."""
    low, high = places.min(0).astype(float), places.max(0).astype(float)
    longer = max(float((high - low).max()), 1e-12)
    side = int(np.clip(1.2 * np.sqrt(len(places)), *PIXELS))
    shape = np.ceil(side * (high - low) / longer).astype(int).clip(1) + 1
    middle, half = (low + high) / 2, shape * longer / side / 2
    (left, bottom), (right, top) = (middle - half).tolist(), (middle + half).tolist()
    return datashader.Canvas(*shape.tolist(), x_range=(left, right), y_range=(bottom, top)), (left, right, bottom, top)


def _weights(coloured: Classes | Scale | None, n: int) -> Array:
    if coloured is None:
        return np.zeros(n, np.float32)
    return (coloured.codes >= 0 if isinstance(coloured, Classes) else np.isfinite(coloured.values)).astype(np.float32)


def _colours_of_rows(classes: Classes) -> Array:
    """(3, n) in OKLab; those without a label, nothing."""
    table = np.vstack([oklab(np.array(class_colours(len(classes.names)))), np.zeros((1, 3))]).astype(np.float32)
    return np.ascontiguousarray(table.T[:, classes.codes])  # -1 is the last


def _on_the_scale(values: Array, scale: Scale, style: Style) -> Array:
    share = (values - scale.least) / (scale.most - scale.least)
    return np.asarray(scale_colours(style)(share.clip(0, 1))[:, :3])


def _strength(counts: Array) -> Array:
    """From the faintest to 1, in equal ranks: each shade takes as many pixels as any other, whatever the counts are."""
    strength = np.zeros(counts.shape, np.float32)
    there = counts > 0
    if there.any():
        distinct, which, times = np.unique(counts[there], return_inverse=True, return_counts=True)
        ranks = np.cumsum(times) - times[0]
        share = ranks / ranks[-1] if len(distinct) > 1 else np.ones(1)
        strength[there] = FAINTEST + (1 - FAINTEST) * share[which]
    return strength
