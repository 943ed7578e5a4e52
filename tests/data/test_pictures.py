"""Images of Pillow as arrays: upright, on white, of one size, and decoded once."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from dre.data.pictures import ORIENTATION, TURNS, Header, PictureArray, to_pixels

PIXELS = np.random.default_rng(0).integers(256, size=(6, 9, 3), dtype=np.uint8)
UPRIGHT = {  # what a viewer does for each orientation of EXIF, in numpy
    1: lambda x: x,
    2: lambda x: x[:, ::-1],
    3: lambda x: x[::-1, ::-1],
    4: lambda x: x[::-1],
    5: lambda x: x.swapaxes(0, 1),
    6: lambda x: np.rot90(x, -1),
    7: lambda x: x[::-1, ::-1].swapaxes(0, 1),
    8: lambda x: np.rot90(x, 1),
}


@pytest.mark.parametrize("suffix", [".png", ".tif", ".webp"])
@pytest.mark.parametrize("orientation", UPRIGHT)
def test_photos_are_turned_upright(tmp_path, orientation, suffix) -> None:
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    Image.fromarray(PIXELS).save(tmp_path / f"a{suffix}", exif=exif, **({"lossless": True} if suffix == ".webp" else {}))
    expected = UPRIGHT[orientation](PIXELS)
    with Image.open(tmp_path / f"a{suffix}") as image:
        header = Header.of(image)
        assert header.size == expected.shape[1::-1]
        assert header.is_turned == (orientation in TURNS)
        np.testing.assert_array_equal(to_pixels(image, "RGB", header.size), expected)


def test_transparent_pixels_are_white() -> None:
    alpha = np.full((6, 9, 1), 255, np.uint8)
    alpha[:2] = 0
    image = Image.fromarray(np.concatenate([PIXELS, alpha], 2))
    assert Header.of(image).has_alpha
    found = to_pixels(image, "RGB", (9, 6))
    assert (found[:2] == 255).all()
    np.testing.assert_array_equal(found[2:], PIXELS[2:])
    gray = Image.fromarray(np.concatenate([PIXELS[..., :1], alpha], 2), mode="LA")
    np.testing.assert_array_equal(to_pixels(gray, "L", (9, 6))[2:], PIXELS[2:, :, 0])


def test_damaged_exif_data_leave_an_image_as_it_is() -> None:
    image = Image.fromarray(PIXELS)
    image.getexif = lambda: 1 / 0  # type: ignore[method-assign]
    np.testing.assert_array_equal(to_pixels(image, "RGB", (9, 6)), PIXELS)


def test_a_large_jpeg_is_reduced_as_it_is_decoded(tmp_path) -> None:
    smooth = np.linspace(0, 255, 800)[:, None, None] * np.ones((1, 640, 3))
    Image.fromarray(smooth.astype(np.uint8)).save(tmp_path / "a.jpg", quality=95)
    with Image.open(tmp_path / "a.jpg") as image:
        found = to_pixels(image, "RGB", (32, 40))
        assert image.size[0] < 640
    np.testing.assert_allclose(found[:, 5, 0], np.linspace(0, 255, 41)[:-1] + 3, atol=3)


def test_images_are_decoded_once_in_any_order_and_in_threads() -> None:
    loads = []

    def load(i: int) -> np.ndarray:
        loads.append(i)
        return np.full((2, 2), i, np.uint8)

    array = PictureArray((20, 2, 2), np.uint8, load)
    assert array[5:8][:, 0, 0].tolist() == [5, 6, 7]
    assert array[np.array([19, 6, 0, 6])][:, 1, 1].tolist() == [19, 6, 0, 6]
    assert array[20:].shape == (0, 2, 2)
    assert array[:][:, 0, 0].tolist() == list(range(20))
    assert sorted(loads) == list(range(20))


def test_no_more_images_are_kept_than_there_is_room_for(monkeypatch) -> None:
    monkeypatch.setattr("dre.data.pictures.available_bytes", lambda: 4 * 12)
    array = PictureArray((9, 2, 2), np.uint8, lambda i: np.full((2, 2), i, np.uint8))
    for _ in range(2):
        assert array[:][:, 0, 0].tolist() == list(range(9))
    assert len(array._cache) == 3
