"""Images at their points in an embedding: as many as fit without covering each other."""

from __future__ import annotations

from typing import Any

import numpy as np

from dre.data.subsample import to_array
from dre.plot.colors import Categorical, Coloring, Continuous
from dre.plot.scales import value_colormap
from dre.plot.style import Style, add_image

Array = np.ndarray[Any, Any]
SIDE = 1 / 26  # of an image, relative to the side of a square as large as the axes
SPACING = 1.12  # between the centers of two images, in sides
CELLS_PER_SIDE = 6  # candidates along a side; more would hardly find more room
CHANNELS = (1, 3, 4)


def draw_images(axis: Any, Y: Array, images: Any, coloring: Coloring, style: Style) -> None:
    """Draw images (n, h, w), (n, h, w, c) or (n, c, h, w) at their points, framed in the colors of their rows."""
    from matplotlib.collections import PolyCollection

    check_images(images, len(Y))
    height, width = np.diff(axis.get_ylim())[0], np.diff(axis.get_xlim())[0]
    side = SIDE * float(np.sqrt(abs(height * width)))
    chosen = spaced_rows(Y, SPACING * side)
    edges = _edge_colors(coloring, chosen, style)
    shown = _ink_on_paper(_to_unit_range(to_array(images, chosen)), style)
    half = side / 2 * np.array(shown.shape[2:0:-1]) / max(shown.shape[1:3])  # images need not be square
    corners = Y[chosen][:, None] + np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * half
    axis.add_collection(PolyCollection(corners, facecolors=style.background, edgecolors="none", alpha=0.82, zorder=3))
    for (x, y), image in zip(Y[chosen], shown, strict=True):
        extent = (x - half[0], x + half[0], y - half[1], y + half[1])
        add_image(axis, image, extent, zorder=3.5)
    axis.add_collection(PolyCollection(corners, facecolors="none", edgecolors=edges, linewidths=0.8, zorder=4))


def check_images(images: Any, n: int) -> None:
    """Raise a ValueError unless these are n images."""
    shape = tuple(getattr(images, "shape", ()))
    has_channels = len(shape) == 4 and (shape[3] in CHANNELS or shape[1] in CHANNELS)
    if not (len(shape) == 3 or has_channels):
        raise ValueError(f"images have the shape {shape}; expected (n, h, w), (n, h, w, c) or (n, c, h, w)")
    if shape[0] != n:
        raise ValueError(f"{shape[0]:,} images for {n:,} rows; pass one for each row")


def spaced_rows(Y: Array, distance: float) -> Array:
    """Choose rows greedily from dense regions on, such that no two are nearer than this in both coordinates."""
    cells = np.floor((Y - Y.min(0)) / (distance / CELLS_PER_SIDE)).astype(np.int64)
    _, candidates, counts = np.unique(
        cells[:, 0] * (cells[:, 1].max() + 1) + cells[:, 1], return_index=True, return_counts=True
    )
    candidates = candidates[np.argsort(-counts, kind="stable")]
    coarse = np.floor((Y[candidates] - Y.min(0)) / distance).astype(int).tolist()
    chosen: dict[tuple[int, int], Any] = {}  # at most one per cell of this size: only the cells around are compared
    for row, (x, y) in zip(candidates, coarse, strict=True):
        around = [chosen[cell] for cell in ((x + i, y + j) for i in (-1, 0, 1) for j in (-1, 0, 1)) if cell in chosen]
        if all(np.abs(Y[row] - Y[other]).max() >= distance for other in around):
            chosen[x, y] = row
    return np.array(sorted(chosen.values()), dtype=np.int64)


def channels_last(images: Array) -> Array:
    """Return (m, h, w), or (m, h, w, c) for several channels."""
    if images.ndim == 4 and images.shape[3] not in CHANNELS:
        images = np.moveaxis(images, 1, 3)
    return images[..., 0] if images.ndim == 4 and images.shape[3] == 1 else images


def _edge_colors(coloring: Coloring, rows: Array, style: Style) -> Any:
    if isinstance(coloring, Categorical):
        colors: list[Any] = [*coloring.colors, style.unlabeled]
        return [colors[code] for code in coloring.codes[rows]]  # code -1 is the last entry
    if isinstance(coloring, Continuous):
        colormap = value_colormap(style)
        shares = coloring.relative(coloring.values[rows])
        return [colormap(share) if np.isfinite(share) else style.unlabeled for share in shares]
    return style.unlabeled


def _to_unit_range(images: Array) -> Array:
    """Return float32 images from 0 to 1."""
    images = channels_last(images)
    values = images.astype(np.float32)
    low, high = (0.0, 255.0) if images.dtype == np.uint8 else (float(values.min()), float(values.max()))
    return (values - low) / max(high - low, 1e-12)


def _ink_on_paper(images: Array, style: Style) -> Array:
    """Return (m, h, w, 3 or 4): gray strokes on an empty background become ink on a transparent one."""
    from matplotlib.colors import to_rgb

    if images.ndim == 4:
        return images
    border = np.concatenate([images[:, 0], images[:, -1], images[:, :, 0], images[:, :, -1]], axis=1)
    background = float(np.median(border))
    if 0.1 < background < 0.9:  # a photograph
        return np.repeat(images[..., None], 3, axis=3)
    ink = np.empty((*images.shape, 4), np.float32)
    ink[..., :3] = to_rgb(style.text)
    ink[..., 3] = images if background <= 0.1 else 1 - images
    return ink
