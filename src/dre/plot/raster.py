"""Small pictures of maps as pixels and PNG, without matplotlib: quick enough to be drawn again while a map is trained."""

from __future__ import annotations

import base64
import html
import struct
import zlib
from typing import Any

import numpy as np

from dre.plot.colors import VIRIDIS, Categorical, Coloring, to_rgb

Array = np.ndarray[Any, Any]
PLAIN, UNLABELED = "#4488cc", "#9aa1ad"  # stand out from white and from black
SIDE = 520  # pixels of a picture in a notebook: sharp where screens have two for one
MARGIN = 0.04  # of the longer side, around the points
OUTLIERS = 0.001  # of the points on each side of an axis that may lie outside
SIGNATURE = b"\x89PNG\r\n\x1a\n"


def point_colors(coloring: Coloring, n: int) -> Array:
    """Return (n, 3) float32 colors from 0 to 1; points without a label are gray.

    >>> from dre.plot.colors import color_by
    >>> point_colors(color_by(["a", None], 2), 2).shape
    (2, 3)
    """
    colors = np.tile(np.array(to_rgb(PLAIN if coloring is None else UNLABELED), np.float32), (n, 1))
    if isinstance(coloring, Categorical):
        known = coloring.is_labeled
        colors[known] = np.array(coloring.colors, np.float32)[coloring.codes[known]]
    elif coloring is not None:
        known = coloring.is_labeled
        stops = np.array([to_rgb(each) for each in VIRIDIS])
        at = coloring.relative(coloring.values[known]).clip(0, 1) * (len(stops) - 1)
        colors[known] = np.stack([np.interp(at, np.arange(len(stops)), part) for part in stops.T], 1)
    return colors


def draw_points(Y: Array, colors: Array, side: int = 480, *, background: str | None = None) -> Array:
    """Draw points as discs; of more than two components the first two.

    Parameters
    ----------
    Y : ndarray of shape (n, c)
    colors : ndarray of shape (n, 3)
        From 0 to 1.
    side : int, default=480
        Pixels of the longer side.
    background : str, optional
        Color such as "#ffffff"; None leaves it transparent.

    Returns
    -------
    ndarray of uint8, of shape (height, width, 4), or (height, width, 3) with a background

    Examples
    --------
    >>> Y, black = np.array([[0.0, 0.0], [1.0, 1.0]]), np.zeros((2, 3))
    >>> draw_points(Y, black, 20).shape, draw_points(Y * [2, 1], black, 20, background="#ffffff").shape
    ((20, 20, 4), (10, 20, 3))
    """
    points = _planar(Y)
    at, width, height = _pixels(points, side)
    offsets, ink = _disc(len(points), side)
    spots = at[:, None] + offsets  # (n, pixels of a disc, 2)
    inside = ((spots >= 0) & (spots < [width, height])).all(2)
    place = (spots[..., 1] * width + spots[..., 0])[inside]
    weights = np.broadcast_to(ink, inside.shape)[inside]
    rows = np.broadcast_to(np.arange(len(points))[:, None], inside.shape)[inside]
    parts = (weights, *(weights * channel[rows] for channel in colors.T))
    inks = np.stack([np.bincount(place, part, minlength=height * width) for part in parts], 1)
    alpha = 1 - np.exp(-inks[:, :1])  # each disc covers a part of what is below it
    mean = inks[:, 1:] / np.maximum(inks[:, :1], 1e-12)
    paper = None if background is None else np.array(to_rgb(background))
    pixels = np.hstack([mean, alpha]) if paper is None else mean * alpha + paper * (1 - alpha)
    return (255 * pixels).round().astype(np.uint8).reshape(height, width, -1)


def image_element(Y: Array, colors: Array, shown: int, *, alt: str = "the map") -> str:
    """Return a picture of points as an HTML element of itself, whose longer side is shown with so many pixels.

    >>> image_element(np.array([[0.0, 0.0], [1.0, 1.0]]), np.zeros((2, 3)), 260)[:70]
    '<img alt="the map" width="260" height="260" style="max-width:100%;heig'
    """
    pixels = draw_points(Y, colors, SIDE)
    height, width = pixels.shape[:2]
    data = base64.b64encode(encode_png(pixels)).decode("ascii")
    size = f'width="{width * shown // SIDE}" height="{height * shown // SIDE}"'
    return f'<img alt="{html.escape(alt)}" {size} style="max-width:100%;height:auto" src="data:image/png;base64,{data}">'


def encode_png(pixels: Array) -> bytes:
    """Encode uint8 pixels (h, w, 3) or (h, w, 4) as PNG.

    >>> encode_png(np.zeros((2, 3, 3), np.uint8))[:8]
    b'\\x89PNG\\r\\n\\x1a\\n'
    """
    height, width, channels = pixels.shape
    lines = np.zeros((height, 1 + width * channels), np.uint8)  # each begins with its filter, none
    lines[:, 1:] = pixels.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, {3: 2, 4: 6}[channels], 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 6)), (b"IEND", b""))
    return SIGNATURE + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts
    )


def _planar(Y: Array) -> Array:
    """The first two components, of finite points; a map of one component lies on a line."""
    points = np.asarray(Y, np.float64)[:, :2]
    if points.shape[1] == 1:
        points = np.hstack([points, np.zeros_like(points)])
    return np.nan_to_num(points, nan=0.0, posinf=0.0, neginf=0.0)


def _pixels(points: Array, side: int) -> tuple[Array, int, int]:
    """Positions (n, 2) of the points in an image, and its width and height; a few outliers may lie outside."""
    low, high = np.quantile(points, [OUTLIERS, 1 - OUTLIERS], axis=0) if len(points) > 200 else (points.min(0), points.max(0))
    longest = max(float((high - low).max()), 1e-300)
    shares = np.maximum((high - low) / longest, 0.5)
    width, height = (max(8, round(side * share)) for share in shares.tolist())
    scale = (1 - 2 * MARGIN) * side / longest
    shifted = (points - (low + high) / 2) * [scale, -scale] + [width / 2, height / 2]
    return np.floor(np.clip(shifted, -1e6, 1e6)).astype(np.int64), width, height


def _disc(n: int, side: int) -> tuple[Array, Array]:
    """Pixels (p, 2) of a disc around its center, and how much ink (p,) each gets: few points are large and opaque."""
    radius = float(np.clip(0.22 * side / np.sqrt(n), side / 400, side / 70))
    ink = float(np.interp(np.log10(max(1, n)), [3, 5], [2.5, 0.6]))
    reach = int(np.ceil(radius)) + 1
    offsets = np.stack(np.meshgrid(*2 * [np.arange(-reach, reach + 1)]), -1).reshape(-1, 2)
    shares = (radius + 0.5 - np.hypot(*offsets.T)).clip(0, 1)
    return offsets[shares > 0], ink * shares[shares > 0]
