"""Images in their places on a map: as many as fit without covering each other."""

from __future__ import annotations

from typing import Any

import numpy as np

from dre.data.subsample import to_array
from dre.plot.colouring import Classes, Scale
from dre.plot.look import Style, class_colours, lay_image, scale_colours

Array = np.ndarray[Any, Any]
SIDE = 1 / 26  # of an image, in the shorter side of the map
GAP = 1.12  # from the middle of an image to that of the next, in sides
FINE = 6  # candidates along a side: more would hardly find more room
CHANNELS = (1, 3, 4)


def draw_images(axis: Any, places: Array, images: Any, coloured: Classes | Scale | None, style: Style) -> None:
    """Draw images (n, h, w), (n, h, w, c) or (n, c, h, w) at their places, framed in the colours of their rows."""
    from matplotlib.collections import PolyCollection

    check_images(images, len(places))
    height, width = np.diff(axis.get_ylim())[0], np.diff(axis.get_xlim())[0]
    side = abs(min(height, width)) * SIDE
    chosen = apart(places, GAP * side)
    edges = _edges(coloured, chosen, style)
    shown = _tinted(_as_shown(to_array(images, chosen)), style)
    half = side / 2 * np.array(shown.shape[2:0:-1]) / max(shown.shape[1:3])  # images need not be square
    corners = places[chosen][:, None] + np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * half
    axis.add_collection(PolyCollection(corners, facecolors=style.paper, edgecolors="none", alpha=0.82, zorder=3))
    for (x, y), image in zip(places[chosen], shown, strict=True):
        extent = (x - half[0], x + half[0], y - half[1], y + half[1])
        lay_image(axis, image, extent, zorder=3.5)
    axis.add_collection(PolyCollection(corners, facecolors="none", edgecolors=edges, linewidths=0.8, zorder=4))


def check_images(images: Any, n: int) -> None:
    shape = tuple(getattr(images, "shape", ()))
    coloured = len(shape) == 4 and (shape[3] in CHANNELS or shape[1] in CHANNELS)
    if not (len(shape) == 3 or coloured):
        raise ValueError(f"images have the shape {shape}: expected (n, h, w), (n, h, w, c) or (n, c, h, w)")
    if shape[0] != n:
        raise ValueError(f"{shape[0]:,} images for {n:,} places: there must be one for each")


def apart(places: Array, distance: float) -> Array:
    """Rows of which no two are nearer than this in both directions; to_array one by one, from where there are many."""
    cells = np.floor((places - places.min(0)) / (distance / FINE)).astype(np.int64)
    _, candidates, counts = np.unique(
        cells[:, 0] * (cells[:, 1].max() + 1) + cells[:, 1], return_index=True, return_counts=True
    )
    candidates = candidates[np.argsort(-counts, kind="stable")]
    coarse = np.floor((places[candidates] - places.min(0)) / distance).astype(int).tolist()
    found: dict[tuple[int, int], Any] = {}  # one at most in each cell of this size, so that eight others are looked at
    for row, (x, y) in zip(candidates, coarse, strict=True):
        around = [found[cell] for cell in ((x + i, y + j) for i in (-1, 0, 1) for j in (-1, 0, 1)) if cell in found]
        if all(np.abs(places[row] - places[other]).max() >= distance for other in around):
            found[x, y] = row
    return np.array(sorted(found.values()), dtype=np.int64)


def _edges(coloured: Classes | Scale | None, rows: Array, style: Style) -> Any:
    if isinstance(coloured, Classes):
        colours: list[Any] = [*class_colours(len(coloured.names)), style.faint]
        return [colours[code] for code in coloured.codes[rows]]  # -1 is the last
    if isinstance(coloured, Scale):
        share = (coloured.values[rows] - coloured.least) / (coloured.most - coloured.least)
        return [scale_colours(style)(one) if np.isfinite(one) else style.faint for one in share]
    return style.faint


def channels_last(images: Array) -> Array:
    """(m, h, w), or (m, h, w, c) where there are several channels."""
    if images.ndim == 4 and images.shape[3] not in CHANNELS:
        images = np.moveaxis(images, 1, 3)
    return images[..., 0] if images.ndim == 4 and images.shape[3] == 1 else images


def _as_shown(images: Array) -> Array:
    """(m, h, w) or (m, h, w, c), from 0 to 1."""
    images = channels_last(images)
    values = images.astype(np.float32)
    least, most = (0.0, 255.0) if images.dtype == np.uint8 else (float(values.min()), float(values.max()))
    return (values - least) / max(most - least, 1e-12)


def _tinted(images: Array, style: Style) -> Array:
    """(m, h, w, 3 or 4): grey strokes on an empty ground are ink on the map's paper; all else is as it is."""
    from matplotlib.colors import to_rgb

    if images.ndim == 4:
        return images
    border = np.concatenate([images[:, 0], images[:, -1], images[:, :, 0], images[:, :, -1]], axis=1)
    ground = float(np.median(border))
    if 0.1 < ground < 0.9:  # a photograph
        return np.repeat(images[..., None], 3, axis=3)
    ink = np.empty((*images.shape, 4), np.float32)
    ink[..., :3] = to_rgb(style.ink)
    ink[..., 3] = images if ground <= 0.1 else 1 - images
    return ink
