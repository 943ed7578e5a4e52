""".npy: an array that numpy saved, mapped into memory and read where it is looked at, so that it may be larger than memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dre.io.readers.file_rows import FileRows
from dre.io.readers.source import Format, Source, SourceError

HOW_TO_SAVE = "Save numbers with numpy.save(path, X), texts with numpy.save(path, labels.astype(str)); pickles are not read"


def open_npy(path: Path, part: str | None = None) -> Source:
    try:
        mapped = np.lib.format.open_memmap(path, mode="r")
    except Exception as problem:  # a damaged file can cause any
        raise SourceError(f"{path} can't be read as an array: {problem}. {HOW_TO_SAVE}") from problem
    return Source(FileRows(path, mapped))


FORMAT = Format((".npy",), open_npy)
