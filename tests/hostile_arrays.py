"""Hostile files of HDF5, AnnData and zarr: functions that write one into a folder and return its path."""

from __future__ import annotations

import bz2
import json
import lzma
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from hostile_tables import BOMB, MANY, ZEROS, Write


def hdf5(name: str, fill: Callable[[Any, Path], None]) -> Write:
    def write(folder: Path) -> Path:
        import h5py

        (folder / "secret.bin").write_bytes(bytes(4096))
        with h5py.File(folder / name, "w") as file:
            fill(file, folder)
        return folder / name

    return write


def dataset(shape: tuple[int, ...], name: str = "X", **options: Any) -> Callable[[Any, Path], None]:
    return lambda file, folder: file.create_dataset(name, shape, "f4", **options) and None


def external(file: Any, folder: Path) -> None:
    file.create_dataset("X", (4, 4), "f4", external=[(str(folder / "secret.bin"), 0, 64)])


def linked(file: Any, folder: Path) -> None:
    import h5py

    with h5py.File(folder / "other.h5", "w") as other:
        other["X"] = np.ones((4, 4))
    file["X"] = h5py.ExternalLink(str(folder / "other.h5"), "X")


def virtual(file: Any, folder: Path) -> None:
    import h5py

    linked(file, folder)
    layout = h5py.VirtualLayout((4, 4), "f8")
    layout[:] = h5py.VirtualSource(str(folder / "other.h5"), "X", (4, 4))
    del file["X"]
    file.create_virtual_dataset("X", layout)


def repeated_text(file: Any, folder: Path) -> None:
    """One text of 2 MB in 10,000 places."""
    import h5py

    file["X"] = np.arange(2 * 10**4).reshape(-1, 2) % 7
    texts = file.create_dataset("text", (10**4,), h5py.string_dtype())
    texts[0] = "x" * (2 * 10**6)
    file.flush()
    offset, size = texts.id.get_offset(), 16
    file.close()
    with (folder / "texts.h5").open("r+b") as raw:
        raw.seek(offset)
        reference = raw.read(size)
        raw.seek(offset)
        raw.write(reference * 10**4)


def tree(file: Any, folder: Path) -> None:
    group = file
    for _ in range(3000):
        group = group.create_group("g")
    group["loop"] = file["/"]
    group["X"] = np.ones((3, 3))


def cells(change: Callable[[Any], None]) -> Callable[[Any, Path], None]:
    """A small file of cells with a sparse matrix, changed."""

    def fill(file: Any, folder: Path) -> None:
        x = file.create_group("X")
        x.attrs.update({"encoding-type": "csr_matrix", "shape": [4, 3]})
        x["data"], x["indices"], x["indptr"] = np.ones(4, "f4"), [0, 1, 2, 0], [0, 1, 2, 3, 4]
        for table, count in (("obs", 4), ("var", 3)):
            file.create_group(table).attrs["_index"] = "_index"
            file[table]["_index"] = [f"{table}{i}".encode() for i in range(count)]
        change(file)

    return fill


def replaced(group: str, name: str, shape: tuple[int, ...], dtype: str = "i8") -> Callable[[Any], None]:
    def change(file: Any) -> None:
        if name in file[group]:
            del file[group][name]
        file[group].create_dataset(name, shape, dtype, chunks=True)

    return change


def attribute(name: str, value: Any) -> Callable[[Any], None]:
    return lambda file: file["X"].attrs.__setitem__(name, value)


def wide_cells(file: Any) -> None:
    replaced("X", "indptr", (MANY + 1,))(file)
    file["X"].attrs["shape"] = [MANY, 3]


def by_columns(file: Any) -> None:
    for name in ("data", "indices"):
        replaced("X", name, (MANY,))(file)
    file["X"].attrs.update({"encoding-type": "csc_matrix", "shape": [4, 4]})


def bad_codes(file: Any) -> None:
    group = file["obs"].create_group("kind")
    group["codes"], group["categories"] = [0, 1, 99, -1], [b"a", b"b"]


def zarr_array(**changes: Any) -> Write:
    """An array of zarr whose metadata are changed."""

    def write(folder: Path) -> Path:
        import zarr

        zarr.save_array(folder / "x.zarr", np.ones((8, 3), "f4"))
        path = folder / "x.zarr" / "zarr.json"
        about = json.loads(path.read_text())
        for key, value in changes.items():
            if key == "chunk":
                about["chunk_grid"]["configuration"]["chunk_shape"] = value
            else:
                about[key] = value
        path.write_text(json.dumps(about))
        return folder / "x.zarr"

    return write


def deflated(wbits: int) -> bytes:
    packer = zlib.compressobj(1, wbits=wbits)
    return b"".join(packer.compress(ZEROS) for _ in range(2 * BOMB)) + packer.flush()


def chunk_bomb(file: Any, folder: Path) -> None:
    array = file.create_dataset("X", (2**10, 2**10), "f4", chunks=(2**10, 2**10), compression="gzip")
    array.id.write_direct_chunk((0, 0), deflated(15))


def zarr_chunk(shape: tuple[int, ...], pack: Callable[[], bytes], codec: str) -> Write:
    """An array whose only chunk holds something else."""

    def write(folder: Path) -> Path:
        import zarr

        packers = {"gzip": zarr.codecs.GzipCodec(), "zstd": zarr.codecs.ZstdCodec()}
        array = zarr.create_array(folder / "x.zarr", shape=shape, chunks=shape, dtype="f4", compressors=packers[codec])
        array[:] = 1
        (folder / "x.zarr" / "c" / "0" / "0").write_bytes(pack())
        return folder / "x.zarr"

    return write


def twice_deflated(file: Any, folder: Path) -> None:
    """A dataset with two filters that deflate, of which the second makes the result of the first small."""
    import h5py

    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk((16, 16))
    plist.set_deflate(9)
    plist.set_deflate(9)
    array = h5py.h5d.create(file.id, b"X", h5py.h5t.NATIVE_FLOAT, h5py.h5s.create_simple((16, 16)), plist)
    array.write_direct_chunk((0, 0), zlib.compress(deflated(15), 9))


def zarr_2(compressor: Any, pack: Callable[[], bytes], filters: Any = None) -> Write:
    """An array of the second version of zarr, whose only chunk holds something else."""

    def write(folder: Path) -> Path:
        import zarr

        array = zarr.create_array(
            folder / "x.zarr", shape=(16, 16), chunks=(16, 16), dtype="f4", compressors=None, zarr_format=2
        )
        array[:] = 1
        path = folder / "x.zarr" / ".zarray"
        path.write_text(json.dumps({**json.loads(path.read_text()), "compressor": compressor, "filters": filters}))
        (folder / "x.zarr" / "0.0").write_bytes(pack())
        return folder / "x.zarr"

    return write


def shards(pack: Callable[[], bytes], codec: str, offset: int = 0) -> Write:
    """An array of one shard with four chunks, all of which are stored as the same content."""

    def write(folder: Path) -> Path:
        import zarr

        packers = {"gzip": zarr.codecs.GzipCodec(), "zstd": zarr.codecs.ZstdCodec()}
        how = {"chunks": (4, 16), "shards": (16, 16), "compressors": packers[codec]}
        array = zarr.create_array(folder / "x.zarr", shape=(16, 16), dtype="f4", **how)
        array[:] = 1
        path, content = folder / "x.zarr" / "zarr.json", pack()
        about = json.loads(path.read_text())
        about["codecs"][0]["configuration"]["index_codecs"] = [{"name": "bytes", "configuration": {"endian": "little"}}]
        path.write_text(json.dumps(about))
        (folder / "x.zarr" / "c" / "0" / "0").write_bytes(content + struct.pack("<QQ", offset, len(content)) * 4)
        return folder / "x.zarr"

    return write


def bzip2_bomb() -> bytes:
    return bz2.compress(bytes(BOMB * len(ZEROS)))


def xz_bomb() -> bytes:
    packer = lzma.LZMACompressor(preset=0)
    return b"".join(packer.compress(ZEROS) for _ in range(BOMB)) + packer.flush()


def blosc_bomb() -> bytes:
    import numcodecs

    return bytes(numcodecs.Blosc("lz4", 9).encode(np.zeros(BOMB * len(ZEROS), np.uint8)))


def zstd_of_unknown_size() -> bytes:
    """Blocks that repeat one byte 128 KiB times, in a frame that does not declare its size."""
    count = BOMB * len(ZEROS) // 2**17
    blocks = [(2**17 << 3 | 1 << 1 | (i == count - 1)).to_bytes(3, "little") + b"\0" for i in range(count)]
    return b"\x28\xb5\x2f\xfd\x00\x58" + b"".join(blocks)


def zstd_bomb() -> bytes:
    import numcodecs

    return bytes(numcodecs.Zstd(1).encode(np.zeros(BOMB * len(ZEROS), np.uint8)))
