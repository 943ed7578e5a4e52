"""Mutations of model files. Those of bytes damage a file; those of its parts edit it, and mostly sign it again."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from model_file_parts import DTYPES, Entry, Parts, write_raw

VALUES: list[Any] = [None, True, False, 0, 1, -1, 2, 3, 10**8, 2**62, 10**30, 0.5, -0.5, 1e308, float("nan"), float("inf")]
VALUES += ["", "x", "mlp(16)", "cuda", "DeepTSNE", "cosine", [], {}, [[]], {"a": 1}, {"list": [1]}, {"tuple": []}]
VALUES += [{"module": "os.system"}, {"unsaved": "x"}, {"encoder": "mlp(8)"}, "9" * 5000, "é\u0000\ud800", [True] * 5]
TEXTS = ["mlp(16, depth=300000)", "mlp(20000)", "mlp(16, n_pcs=99999999)", "model-a", "model-b", "patch-mlp", "strided"]
TEXTS += [f"model-b(filters={'1/' * 2000})", f"mlp({'9' * 5000})", "mlp(" * 500, "mlp(16, depth=0)", "mlp(-1)", "mlp(1e9)"]
TEXTS += ["x: gaussian(5) -> kl * 1", f"x: gaussian(5) -> {'(' * 3000}kl * 1", "x: gaussian(5) -> kl * 1;" * 300]
TEXTS += [f"x: gaussian(5) -> {'kl + ' * 1000}kl * 1", "noise(0.5)", "adam(0.1)", "adam(nan)", "shuffled(5)", "fixed(0)"]
NUMBERS = [0, 1, 2, 3, 5, 7, 100, 300000, 10**8, 2**31, 2**63, 10**40, -1]


def flip(rng: random.Random, content: bytearray) -> None:
    for _ in range(rng.choice([1, 1, 1, 5])):
        content[_position(rng, content)] ^= 1 << rng.randrange(8)


def overwrite(rng: random.Random, content: bytearray) -> None:
    at = _position(rng, content)
    content[at : at + rng.choice([1, 2, 8])] = rng.choice([b"0", b"9", b"-", b"e", b"\x00" * 8, b"\xff" * 8, rng.randbytes(4)])


def digit(rng: random.Random, content: bytearray) -> None:
    """Change a digit of the header: a shape, an offset, a parameter or a loss."""
    length = 8 + struct.unpack("<Q", content[:8])[0]
    digits = [at for at in range(8, min(length, len(content))) if chr(content[at]).isdigit()]
    content[rng.choice(digits)] = ord(rng.choice("0123456789"))


def truncate(rng: random.Random, content: bytearray) -> None:
    del content[_position(rng, content) :]


def insert(rng: random.Random, content: bytearray) -> None:
    at = _position(rng, content)
    content[at:at] = rng.choice([b"0", b'"', b"[", b"{", b" ", b"9" * 5000, b"[" * 5000, rng.randbytes(16)])


def remove(rng: random.Random, content: bytearray) -> None:
    at = _position(rng, content)
    del content[at : at + rng.choice([1, 4, 64])]


def header_length(rng: random.Random, content: bytearray) -> None:
    length = struct.unpack("<Q", content[:8])[0]
    content[:8] = struct.pack("<Q", rng.choice([0, 1, length - 1, length + 1, 2 * length, 10**8, 2**40, 2**64 - 1]))


def _position(rng: random.Random, content: bytearray) -> int:
    return rng.randrange(min(len(content), rng.choice([9, 400, 10**9])))


BYTES: list[Callable[[random.Random, bytearray], None]] = [
    flip,
    flip,
    overwrite,
    digit,
    truncate,
    insert,
    remove,
    header_length,
]


def change_value(rng: random.Random, parts: Parts) -> None:
    """Put a strange value somewhere into the configuration."""
    holder, key = rng.choice(_places(parts.configuration))
    old = holder[key]
    near = [old * 2, old + 1, -old, old * 1e300, str(old)] if isinstance(old, (int, float)) else []
    holder[key] = rng.choice(near) if near and rng.random() < 0.5 else rng.choice(VALUES)


def change_text(rng: random.Random, parts: Parts) -> None:
    """Edit a text, a few characters or all of it."""
    holder, key = rng.choice([(holder, key) for holder, key in _places(parts.configuration) if isinstance(holder[key], str)])
    text = holder[key]
    if not text or rng.random() < 0.4:
        holder[key] = rng.choice(TEXTS)
    else:
        at = rng.randrange(len(text))
        holder[key] = (
            text[:at] + rng.choice(["", "9", "0", "99999", "(", ")", "/", "-", ".", "e", "x", "=", ",", "é"]) + text[at + 1 :]
        )


def drop_key(rng: random.Random, parts: Parts) -> None:
    holder, key = rng.choice([(holder, key) for holder, key in _places(parts.configuration) if isinstance(holder, dict)])
    if rng.random() < 0.5:
        holder[rng.choice(["class", "format", "device", "evil", "recipe"])] = holder[key]
    del holder[key]


def nest(rng: random.Random, parts: Parts) -> None:
    holder, key = rng.choice(_places(parts.configuration))
    kind = rng.choice(["list", "tuple", "recipe", None])
    for _ in range(rng.choice([1, 3, 40, 400])):
        holder[key] = [holder[key]] if kind is None else {kind: [holder[key]]}


def change_numbers(rng: random.Random, parts: Parts) -> None:
    """Set some values of a tensor to strange numbers."""
    entry = parts.tensors[rng.choice(list(parts.tensors))]
    if entry.dtype in ("F32", "F64") and entry.content:
        values = np.frombuffer(bytearray(entry.content), np.float32 if entry.dtype == "F32" else np.float64)
        at = rng.randrange(values.size)
        with np.errstate(over="ignore"):
            values[at] = rng.choice([0, -1, 1e-320, 1e-30, 1e30, 3e38, -3e38, np.nan, np.inf, float(values[at]) * 2])
        entry.content = values.tobytes()


def change_dtype(rng: random.Random, parts: Parts) -> None:
    entry = parts.tensors[rng.choice(list(parts.tensors))]
    entry.dtype = rng.choice([*DTYPES, "F8", "F4", "", None, 3])
    if entry.dtype in DTYPES and rng.random() < 0.7 and isinstance(entry.shape, list):  # as many values again
        entry.content = bytes(int(np.prod(entry.shape)) * DTYPES[entry.dtype].itemsize)


def change_shape(rng: random.Random, parts: Parts) -> None:
    entry = parts.tensors[rng.choice(list(parts.tensors))]
    if not isinstance(entry.shape, list) or not all(isinstance(side, int) for side in entry.shape):
        return  # changed before
    kinds = [
        entry.shape[::-1],
        [*entry.shape, 1],
        [1, *entry.shape],
        [int(np.prod(entry.shape))],
        [rng.choice(NUMBERS)],
        [],
        [0],
    ]
    entry.shape = rng.choice([*kinds, [*entry.shape[:-1], rng.choice(NUMBERS)], None, "6", [None], [0.5]])
    if isinstance(entry.shape, list) and entry.dtype in DTYPES and rng.random() < 0.7:
        try:
            count = int(np.prod([int(side) for side in entry.shape], dtype=object))
        except TypeError:
            return
        if 0 <= count < 10**6:
            entry.content = bytes(count * DTYPES[entry.dtype].itemsize)


def change_tensors(rng: random.Random, parts: Parts) -> None:
    """Drop, rename, add or swap tensors."""
    name = rng.choice(list(parts.tensors))
    other = rng.choice([*parts.tensors, "weights.evil", "stages.7.out.bias", "scaling.column_std", "evil", "__metadata__"])
    what = rng.randrange(5)
    if what == 0:
        del parts.tensors[name]
    elif what == 1:
        parts.tensors[other] = parts.tensors.pop(name)
    elif what == 2:
        parts.tensors[other] = parts.tensors[name]
    elif what == 3:
        parts.tensors |= {f"weights.h{i}.0.weight": Entry("F32", [0], b"") for i in range(rng.choice([3, 3000]))}
    elif other in parts.tensors:
        parts.tensors[name], parts.tensors[other] = parts.tensors[other], parts.tensors[name]


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every place of a nested value, as the list or dict that holds it and its key."""
    places, open_ = [], [value]
    while open_:  # not by recursion: mutants are nested deeply
        holder = open_.pop()
        if isinstance(holder, (dict, list)):
            keys = list(holder) if isinstance(holder, dict) else range(len(holder))
            places += [(holder, key) for key in keys]
            open_ += holder.values() if isinstance(holder, dict) else holder
    return places


PARTS: list[Callable[[random.Random, Parts], None]] = [change_value, change_value, change_text, change_text, drop_key, nest]
PARTS += [change_numbers, change_numbers, change_dtype, change_shape, change_tensors]


def mutate(original: Path, seed: int, path: Path) -> tuple[str, bool]:
    """Write a mutant; return the kind of mutation, and whether its digest was computed anew."""
    rng = random.Random(seed)
    if rng.random() < 0.4:
        content, damage = bytearray(original.read_bytes()), rng.choice(BYTES)
        damage(rng, content)
        path.write_bytes(content)
        return damage.__name__, False
    parts = Parts.read(original)
    edit = rng.choice(PARTS)
    for _ in range(rng.choice([1, 1, 1, 2])):
        edit(rng, parts)
    signed = rng.random() < 0.8
    if signed:
        try:
            parts.sign()
        except Exception:  # not even a digest can be computed of it
            signed = False
    try:
        parts.write(path)
    except (RecursionError, UnicodeEncodeError):
        write_raw(path, b'{"__metadata__":{"dre":"' + b"[" * 10**5 + b'"}}', b"")
    return edit.__name__, signed
