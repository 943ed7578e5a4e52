"""MNIST and Fashion-MNIST, and the IDX files that they come in."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import struct
from pathlib import Path

import numpy as np
import pytest
from stand_ins import Network, held

from dre.datasets import CorruptFileError, DatasetNotFoundError, load, mnist
from dre.datasets.mnist import IDX_TYPES, parse_idx

FILES = {"mnist": "MNIST_FILES", "fashion-mnist": "FASHION_MNIST_FILES"}


def idx(values: np.ndarray) -> bytes:
    code = {np.dtype(dtype): code for code, dtype in IDX_TYPES.items()}[values.dtype]
    return bytes([0, 0, code, values.ndim]) + struct.pack(f">{values.ndim}I", *values.shape) + values.tobytes()


@pytest.mark.parametrize("dtype", IDX_TYPES.values())
@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 3, 4), (0, 28, 28)])
def test_any_array_is_read_as_it_was_written(dtype: str, shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(0).integers(0, 100, shape).astype(dtype)
    found = parse_idx(idx(values))
    assert found.dtype == values.dtype
    np.testing.assert_array_equal(found, values)
    assert found.flags.writeable


@pytest.mark.parametrize("damage", ["", "x", "magic", "type", "header", "short", "long"])
def test_a_header_that_does_not_fit_the_size_is_an_error(damage: str) -> None:
    good = idx(np.zeros((2, 3), np.uint8))
    bad = {
        "": b"",
        "x": b"x",
        "magic": b"\1" + good[1:],
        "type": good[:2] + b"\7" + good[3:],
        "header": good[:7],
        "short": good[:-1],
        "long": good + b"\0",
    }[damage]
    with pytest.raises(CorruptFileError, match=r"some\.gz"):
        parse_idx(bad, "some.gz")


@pytest.fixture(params=FILES)
def small(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, Path, list[np.ndarray]]:
    """A set of four small files in the published form: its name, the folder above it, and what is in it."""
    name, random = request.param, np.random.default_rng(0)
    arrays = [random.integers(0, 256, (n, 28, 28)).astype(np.uint8) if images else random.integers(0, 10, n).astype(np.uint8)
              for n in (12, 5) for images in (True, False)]  # fmt: skip
    (tmp_path / "data" / name).mkdir(parents=True)
    files = []
    for file, values in zip(getattr(mnist, FILES[name]), arrays, strict=True):
        (tmp_path / "data" / name / file.name).write_bytes(gzip.compress(idx(values)))
        files.append(dataclasses.replace(file, checksum=f"md5:{hashlib.md5(idx(values)).hexdigest()}"))
    monkeypatch.setattr(mnist, FILES[name], tuple(files))
    return name, tmp_path / "data", arrays


def test_images_stay_bytes_and_labels_are_whole_numbers(network: Network, small: tuple[str, Path, list[np.ndarray]]) -> None:
    name, folder, (images, labels, test_images, test_labels) = small
    before = held(folder)
    dataset = load(name, folder=folder)
    for part, rows, expected in ((dataset.train, images, labels), (dataset.test, test_images, test_labels)):
        assert part.rows.dtype == np.uint8
        np.testing.assert_array_equal(part.rows, rows)
        np.testing.assert_array_equal(part.labels, expected)
        assert part.labels.dtype == np.int64
    assert dataset.name == name
    assert held(folder) == before
    assert network.asked == []


def test_a_copy_with_one_other_byte_is_found_out(network: Network, small: tuple[str, Path, list[np.ndarray]]) -> None:
    name, folder, (images, *_) = small
    changed = images.copy()
    changed[3, 4, 5] += 1
    path = folder / name / "train-images-idx3-ubyte.gz"
    path.write_bytes(gzip.compress(idx(changed)))
    with pytest.raises(CorruptFileError, match="md5"):
        load(name, folder=folder)


def test_missing_files_are_asked_for_where_they_are_published(
    network: Network, small: tuple[str, Path, list[np.ndarray]]
) -> None:
    name, folder, _ = small
    missing = getattr(mnist, FILES[name])[3]
    content = (folder / name / missing.name).read_bytes()
    (folder / name / missing.name).unlink()
    with pytest.raises(DatasetNotFoundError, match=missing.name):
        load(name, folder=folder)
    network.pages[missing.url] = content
    assert len(load(name, folder=folder).test.labels) == 5
    assert network.asked == [missing.url] * 2
    assert missing.url.startswith(("https://ossci-datasets.s3.", "https://fashion-mnist.s3."))
