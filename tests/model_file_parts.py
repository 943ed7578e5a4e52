"""A model file taken apart, to be edited and, as an attacker would, signed again."""

from __future__ import annotations

import copy
import json
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from dre.model.archive import HEADER
from dre.model.digest import digest, digest_format_1

DTYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64}
DTYPES |= {"I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool}


@dataclass
class Entry:
    """One tensor as the header declares it, and its bytes."""

    dtype: Any
    shape: Any
    content: bytes

    def tensor(self) -> torch.Tensor:
        dtype = DTYPES[self.dtype]
        flat = torch.frombuffer(bytearray(self.content), dtype=dtype) if self.content else torch.empty(0, dtype=dtype)
        return flat.reshape(self.shape)


@dataclass
class Parts:
    """The configuration and the tensors of a file; nothing says that they agree."""

    configuration: Any
    tensors: dict[str, Entry]

    @classmethod
    def read(cls, path: Path) -> Parts:
        content = path.read_bytes()
        start = 8 + struct.unpack("<Q", content[:8])[0]
        table = json.loads(content[8:start])
        configuration = json.loads(table.pop("__metadata__")[HEADER])
        return cls(
            configuration,
            {
                name: Entry(
                    entry["dtype"], entry["shape"], content[start + entry["data_offsets"][0] : start + entry["data_offsets"][1]]
                )
                for name, entry in table.items()
            },
        )

    def copy(self) -> Parts:
        return copy.deepcopy(self)

    def sign(self) -> None:
        """Put the digest of what is there now into the configuration."""
        rest = {key: value for key, value in self.configuration.items() if key != "sha256"}
        tensors = {name: entry.tensor() for name, entry in self.tensors.items()}
        self.configuration = rest | {"sha256": digest_format_1(tensors) if rest.get("format") == 1 else digest(rest, tensors)}

    def write(self, path: Path, text: str | None = None) -> None:
        """Write the file; ``text`` stands for the configuration."""
        table: dict[str, Any] = {"__metadata__": {HEADER: json.dumps(self.configuration) if text is None else text}}
        at = 0
        for name, entry in self.tensors.items():
            table[name] = {"dtype": entry.dtype, "shape": entry.shape, "data_offsets": [at, at + len(entry.content)]}
            at += len(entry.content)
        write_raw(path, json.dumps(table).encode(), b"".join(entry.content for entry in self.tensors.values()))


def write_raw(path: Path, header: bytes, content: bytes) -> None:
    """Write a safetensors file with any header."""
    path.write_bytes(struct.pack("<Q", len(header)) + header + content)
