"""Chunks of HDF5 and zarr that unfold to more than their values are refused before they are decompressed."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from dre.io.readers import SourceError, open_source
from dre.io.readers.unfolding import unfolded_size

zarr = pytest.importorskip("zarr")
numcodecs = pytest.importorskip("numcodecs")
X = np.random.default_rng(0).normal(size=(64, 8)).astype(np.float32)
MIB = 2**20
SIZE = 256 * MIB
TOO_LARGE = r"is damaged: a chunk.* bytes or more, where its values need at most"


def deflated(size: int, wbits: int = zlib.MAX_WBITS) -> bytes:
    packer = zlib.compressobj(9, wbits=wbits)
    return b"".join(packer.compress(bytes(MIB)) for _ in range(size // MIB)) + packer.flush()


def zstd(size: int) -> bytes:
    return bytes(numcodecs.Zstd().encode(np.zeros(size, np.uint8)))


def zstd_of_unknown_size(blocks: int) -> bytes:
    """Blocks that repeat a byte 128 KiB times, in a frame that does not declare its size."""
    repeated = [(2**17 << 3 | 1 << 1 | (i == blocks - 1)).to_bytes(3, "little") + b"\0" for i in range(blocks)]
    return b"\x28\xb5\x2f\xfd\x00\x58" + b"".join(repeated)


def skipped_zstd(content: bytes) -> bytes:
    return struct.pack("<II", 0x184D2A50, 3) + b"abc" + content


def reserved_flag(content: bytes) -> bytes:
    return content[:3] + bytes([content[3] | 0x80]) + content[4:]  # which zlib refuses, and Python's gzip does not


def hdf5(path: Path, shape: tuple[int, ...], chunk: bytes, filters: list[tuple[int, tuple[int, ...]]] | None = None) -> None:
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk(shape)
    for number, values in [(1, (4,))] if filters is None else filters:
        plist.set_filter(number, h5py.h5z.FLAG_OPTIONAL, values)
    with h5py.File(path, "w") as file:
        space = h5py.h5s.create_simple(shape)
        array = h5py.h5d.create(file.id, b"X", h5py.h5t.NATIVE_FLOAT, space, plist)
        array.write_direct_chunk((0,) * len(shape), chunk)


def zarr_folder(path: Path, shape: tuple[int, ...], codec: str, chunk: bytes, about: Any = None) -> None:
    """An array of one chunk in zarr 3, whose compressors are replaced."""
    array = zarr.create_array(path, shape=shape, chunks=shape, dtype="f4", compressors=None)
    array[:] = 1
    settings = json.loads((path / "zarr.json").read_text())
    settings["codecs"] += about or [
        {"name": codec, "configuration": {"level": 1, "checksum": False} if codec == "zstd" else {"level": 1}}
    ]
    (path / "zarr.json").write_text(json.dumps(settings))
    (path / "c/0/0").write_bytes(chunk)


def zarr_2(path: Path, chunk: bytes, compressor: dict[str, Any] | None, filters: list[dict[str, Any]] | None = None) -> None:
    array = zarr.create_array(path, shape=X.shape, chunks=X.shape, dtype="f4", compressors=None, zarr_format=2)
    array[:] = 1
    settings = json.loads((path / ".zarray").read_text())
    (path / ".zarray").write_text(json.dumps({**settings, "compressor": compressor, "filters": filters}))
    (path / "0.0").write_bytes(chunk)


def shards(path: Path, content: bytes, offset: int = 0) -> None:
    """A shard of 8 chunks, each of which is stored as the same content."""
    array = zarr.create_array(
        path, shape=X.shape, chunks=(8, 8), shards=X.shape, dtype="f4", compressors=zarr.codecs.ZstdCodec()
    )
    array[:] = 1
    settings = json.loads((path / "zarr.json").read_text())
    settings["codecs"][0]["configuration"]["index_codecs"] = [{"name": "bytes", "configuration": {"endian": "little"}}]
    (path / "zarr.json").write_text(json.dumps(settings))
    (path / "c/0/0").write_bytes(content + struct.pack("<QQ", offset, len(content)) * 8)


@pytest.fixture
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dre.io.readers.chunk_limits.available_bytes", lambda: 512 * MIB)


@pytest.mark.parametrize("shape", [(64, 8), (64, 2048)], ids=["small", "large"])
@pytest.mark.parametrize(
    ("codec", "pack"),
    [
        ("zlib", lambda: deflated(SIZE)),
        ("gzip", lambda: deflated(SIZE, 31)),
        ("gzip", lambda: gzip.compress(b"abc") + deflated(SIZE, 31)),
        ("gzip", lambda: reserved_flag(deflated(SIZE, 31))),
        ("zstd", lambda: zstd(SIZE)),
        ("zstd", lambda: zstd(100) + zstd(SIZE)),
        ("zstd", lambda: zstd_of_unknown_size(SIZE // 2**17)),
        ("zstd", lambda: skipped_zstd(zstd(SIZE))),
    ],
    ids=[
        "hdf5",
        "gzip",
        "gzip members",
        "gzip flag",
        "zstd",
        "zstd frames",
        "zstd of unknown size",
        "zstd behind a skipped frame",
    ],
)
@pytest.mark.usefixtures("little_memory")
def test_a_chunk_that_unfolds_too_far(tmp_path: Path, shape: tuple[int, ...], codec: str, pack: Callable[[], bytes]) -> None:
    if codec == "zlib":
        hdf5(tmp_path / "x.h5", shape, pack())
    else:
        zarr_folder(tmp_path / "x.zarr", shape, codec, pack())
    with pytest.raises(SourceError, match=TOO_LARGE):
        open_source(next(tmp_path.glob("x.*"))).rows.read(0, 1)


@pytest.mark.parametrize(
    ("compressor", "pack"),
    [
        ({"id": "bz2", "level": 9}, lambda: bz2.compress(bytes(SIZE))),
        ({"id": "bz2", "level": 9}, lambda: bz2.compress(b"a") + bz2.compress(bytes(SIZE))),
        ({"id": "lzma", "format": 1, "preset": 1, "check": -1, "filters": None}, lambda: lzma.compress(bytes(SIZE), preset=1)),
        ({"id": "zlib", "level": 1}, lambda: deflated(SIZE)),
        ({"id": "lz4", "acceleration": 1}, lambda: struct.pack("<I", SIZE) + bytes(100)),
        (
            {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0},
            lambda: bytes(numcodecs.Blosc("lz4").encode(np.zeros(SIZE, np.uint8))),
        ),
    ],
    ids=["bz2", "bz2 twice", "lzma", "zlib", "lz4", "blosc"],
)
@pytest.mark.usefixtures("little_memory")
def test_a_chunk_of_zarr_2_that_unfolds_too_far(tmp_path: Path, compressor: dict[str, Any], pack: Callable[[], bytes]) -> None:
    zarr_2(tmp_path / "x.zarr", pack(), compressor)
    with pytest.raises(SourceError, match=TOO_LARGE):
        open_source(tmp_path / "x.zarr").rows.read(0, 1)


@pytest.mark.parametrize(
    ("number", "chunk"),
    [
        (32015, zstd_of_unknown_size(2000)),
        (307, bz2.compress(bytes(SIZE))),
        (32001, b"\2\1\1\4" + struct.pack("<III", SIZE, SIZE, 100)),
        (32004, struct.pack(">Q", SIZE) + bytes(90)),
        (4, struct.pack("<I", SIZE) + bytes(90)),
    ],
    ids=["zstd", "bz2", "blosc", "lz4", "szip"],
)
@pytest.mark.usefixtures("little_memory")
def test_a_chunk_of_another_filter_of_hdf5_that_unfolds_too_far(tmp_path: Path, number: int, chunk: bytes) -> None:
    values = (4, 4, 4, 4) if number == 4 else ()
    hdf5(tmp_path / "x.h5", X.shape, chunk, [(number, values)])
    with pytest.raises(SourceError, match=TOO_LARGE):
        open_source(tmp_path / "x.h5").rows.read(0, 1)


@pytest.mark.parametrize("filters", [[(1, (9,)), (1, (9,))], [(32000, ()), (1, (9,))], [(1, (9,)), (2, (4,))]])
def test_several_compressors_in_hdf5_are_refused(tmp_path: Path, filters: list[tuple[int, tuple[int, ...]]]) -> None:
    hdf5(tmp_path / "x.h5", X.shape, zlib.compress(zlib.compress(bytes(64 * MIB), 9), 9), filters)
    with pytest.raises(
        SourceError, match=r"'X' is compressed by .*, which may unfold to any size; save it with one compressor"
    ):
        open_source(tmp_path / "x.h5")


def test_a_virtual_dataset_does_not_hide_them(tmp_path: Path) -> None:
    hdf5(tmp_path / "x.h5", X.shape, zlib.compress(zlib.compress(bytes(64 * MIB), 9), 9), [(1, (9,)), (1, (9,))])
    with h5py.File(tmp_path / "x.h5", "a") as file:
        layout = h5py.VirtualLayout(X.shape, "f4")
        layout[:] = h5py.VirtualSource(".", "X", X.shape)
        file.create_virtual_dataset("V", layout)
    with pytest.raises(SourceError, match="save it with one compressor"):
        open_source(tmp_path / "x.h5", part="V").rows.read(0, 1)


def test_a_filter_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    hdf5(tmp_path / "x.h5", X.shape, bytes(100), [(40_000, ())])
    with pytest.raises(SourceError, match=r"is stored by 'filter 40000.*', and nothing tells what it unfolds to"):
        open_source(tmp_path / "x.h5")


ZLIB = {"id": "zlib", "level": 9}


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ([ZLIB], "compressed by zlib, zlib"),
        ([{"id": "bz2", "level": 9}], "compressed by bz2, zlib"),
        ([{"id": "base64"}], "stored by 'base64', and nothing tells"),
        ([{"id": "astype", "encode_dtype": "<f4", "decode_dtype": "<U100000"}], "returns no numbers"),
    ],
)
def test_other_codecs_of_zarr_2_are_refused(tmp_path: Path, filters: list[dict[str, Any]], message: str) -> None:
    zarr_2(tmp_path / "x.zarr", zlib.compress(zlib.compress(bytes(64 * MIB), 9), 9), ZLIB, filters)
    with pytest.raises(SourceError, match=message):
        open_source(tmp_path / "x.zarr").rows.read(0, 1)


def test_several_compressors_in_zarr_3_are_refused(tmp_path: Path) -> None:
    gzipped = {"name": "gzip", "configuration": {"level": 1}}
    zarr_folder(tmp_path / "x.zarr", X.shape, "gzip", gzip.compress(gzip.compress(bytes(64 * MIB))), [gzipped, gzipped])
    with pytest.raises(SourceError, match="compressed by bytes, gzip, gzip, which may unfold to any size"):
        open_source(tmp_path / "x.zarr")


@pytest.mark.usefixtures("little_memory")
def test_chunks_in_shards_are_checked(tmp_path: Path) -> None:
    shards(tmp_path / "sound.zarr", bytes(numcodecs.Zstd().encode(X[:8])))
    np.testing.assert_array_equal(open_source(tmp_path / "sound.zarr").rows.read(0, 64).numpy(), np.tile(X[:8], (8, 1)))
    shards(tmp_path / "bomb.zarr", zstd(SIZE))
    with pytest.raises(SourceError, match=TOO_LARGE):
        open_source(tmp_path / "bomb.zarr").rows.read(0, 1)
    shards(tmp_path / "beyond.zarr", zstd(100), offset=1000)
    with pytest.raises(SourceError, match="a chunk ends behind the end of its shard"):
        open_source(tmp_path / "beyond.zarr").rows.read(0, 1)


@pytest.mark.filterwarnings("ignore:Combining a")
def test_shards_with_a_compressed_index_or_behind_a_compressor_are_refused(tmp_path: Path) -> None:
    gzipped = {"name": "gzip", "configuration": {"level": 1}}
    for name, change, message in (
        ("index", lambda codecs: codecs[0]["configuration"]["index_codecs"].append(gzipped), "the index of the shards"),
        ("whole", lambda codecs: codecs.append(gzipped), "go through other codecs"),
    ):
        path = tmp_path / f"{name}.zarr"
        shards(path, zstd(100))
        settings = json.loads((path / "zarr.json").read_text())
        change(settings["codecs"])
        (path / "zarr.json").write_text(json.dumps(settings))
        with pytest.raises(SourceError, match=message):
            open_source(path)


SOUND = {
    "default": {},
    "raw": {"compressors": None},
    "gzip": {"compressors": zarr.codecs.GzipCodec()},
    "zstd with a checksum": {"compressors": zarr.codecs.ZstdCodec(checksum=True)},
    "zstd behind a checksum": {"compressors": [zarr.codecs.ZstdCodec(), zarr.codecs.Crc32cCodec()]},
    "blosc": {"compressors": zarr.codecs.BloscCodec(cname="lz4")},
    "shards": {"shards": (64, 8)},
    "shards of some rows": {"shards": (16, 8)},
    "shards of blosc": {"shards": (32, 4), "compressors": zarr.codecs.BloscCodec()},
    "shards of gzip": {"shards": (32, 4), "compressors": zarr.codecs.GzipCodec()},
    "shards with an index first": {"shards": {"shape": (32, 8), "index_location": "start"}},
    "transposed": {"filters": zarr.codecs.TransposeCodec(order=(1, 0))},
    "zarr 2": {"zarr_format": 2},
    **{
        f"zarr 2, {codec.codec_id}": {"zarr_format": 2, "compressors": codec}
        for codec in (
            numcodecs.Blosc(),
            numcodecs.LZ4(),
            numcodecs.Zstd(),
            numcodecs.Zlib(),
            numcodecs.GZip(),
            numcodecs.BZ2(),
            numcodecs.LZMA(),
        )
    },
    "zarr 2, delta": {"zarr_format": 2, "filters": [numcodecs.Delta("<f4")], "compressors": numcodecs.Zlib()},
    "zarr 2, shuffle": {"zarr_format": 2, "filters": [numcodecs.Shuffle(4)], "compressors": numcodecs.LZ4()},
}


@pytest.mark.parametrize("options", SOUND.values(), ids=list(SOUND))
@pytest.mark.parametrize("values", [X, np.zeros_like(X)], ids=["random", "zeros"])
def test_sound_chunks_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: Any, values: Any) -> None:
    monkeypatch.setattr("dre.io.readers.chunk_limits.available_bytes", lambda: 1000)  # all chunks are suspicious
    chunks = (8, 4) if "shards" in options else (10, 3)
    array = zarr.create_array(
        tmp_path / "x.zarr", shape=X.shape, dtype="f4", chunks=chunks, config={"write_empty_chunks": True}, **options
    )
    array[:] = values
    rows = open_source(tmp_path / "x.zarr").rows
    for start, stop in ((0, 64), (3, 21), (40, 64)):
        np.testing.assert_allclose(rows.read(start, stop).numpy(), values[start:stop], atol=1e-5)


@pytest.mark.parametrize("size", [1, 1000, 300_000])
@pytest.mark.parametrize("name", ["gzip", "zlib", "bz2", "lzma", "zstd", "blosc", "lz4"])
def test_bounds_are_not_below_the_size(name: str, size: int) -> None:
    codec = numcodecs.get_codec({"id": name})
    for values in (np.zeros(size, np.uint8), np.random.default_rng(0).integers(256, size=size, dtype=np.uint8)):
        found = unfolded_size(name, bytes(codec.encode(values)), 10**6)
        assert size <= found <= 10**6


def test_texts_in_zarr_are_read(tmp_path: Path) -> None:
    group = zarr.open_group(tmp_path / "x.zarr", mode="w")
    group.create_array("X", data=X)
    names = group.create_array("names", shape=(64,), chunks=(10,), dtype=str)
    names[:] = np.array([f"row {i}" for i in range(64)])
    assert open_source(tmp_path / "x.zarr").metadata["names"].tolist() == [f"row {i}" for i in range(64)]


@pytest.mark.parametrize(
    "options",
    [
        {"compression": "gzip"},
        {"compression": "lzf"},
        {"compression": "gzip", "shuffle": True},
        {"compression": None, "scaleoffset": 3},
        {"compression": "gzip", "scaleoffset": 3},
        {"compression": None},
    ],
    ids=str,
)
def test_sound_chunks_of_hdf5_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: Any) -> None:
    monkeypatch.setattr("dre.io.readers.chunk_limits.available_bytes", lambda: 1000)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("X", data=X, chunks=(10, 3), fletcher32="scaleoffset" not in options, **options)
    rows = open_source(tmp_path / "x.h5").rows
    np.testing.assert_allclose(rows.read(0, 64).numpy(), X, atol=1e-3)


def test_chunks_that_could_not_be_compressed_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dre.io.readers.chunk_limits.available_bytes", lambda: 1000)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        array = file.create_dataset("X", X.shape, "f4", chunks=X.shape, compression="gzip")
        array.id.write_direct_chunk((0, 0), X.tobytes(), filter_mask=1)
    np.testing.assert_array_equal(open_source(tmp_path / "x.h5").rows.read(0, 64).numpy(), X)


def test_chunks_are_unfolded_for_the_rows_that_are_read_and_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dre.io.readers.chunk_limits.available_bytes", lambda: 1000)
    checked: list[int] = []
    monkeypatch.setattr("dre.io.readers.chunk_limits.unfolded_size", lambda *about: checked.append(1) or 0)
    monkeypatch.setattr("dre.io.readers.file_rows.MIN_BLOCK_VALUES", 1)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("X", data=X, chunks=(8, 8), compression="gzip")
    rows = open_source(tmp_path / "x.h5").rows
    assert not checked
    for expected in (2, 2, 8):
        np.testing.assert_array_equal(rows.read(0, 64 if expected == 8 else 16).numpy(), X[: 64 if expected == 8 else 16])
        assert len(checked) == expected
