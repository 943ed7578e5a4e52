"""Embeddings to files, written in pieces; a file is complete or absent."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dre.atomic import atomic_write, check_absent, link_target
from dre.io.readers.source import match_suffix
from dre.io.writers.formats import FORMATS, DelimitedSink, GapSink, OutputSpec, Sink, SinkFormat

__all__ = ["FORMATS", "OutputSpec", "Sink", "SinkFormat", "check_writable", "open_sink", "open_stdout"]


@contextmanager
def open_sink(path: str | Path, spec: OutputSpec, *, force: bool = False) -> Iterator[Sink]:
    """Open a file for writing an embedding in pieces; the suffix chooses the format.

    The file appears once all is written. If writing fails, an existing file stays as it was. If ``path`` is a link, its
    target is written and the link stays.

    Parameters
    ----------
    path : str or Path
        File to write.
    spec : OutputSpec
        Shape and names of the embedding.
    force : bool, default=False
        Whether to replace an existing file.

    Yields
    ------
    sink : Sink
        Its ``write`` takes the next rows.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open_sink(Path(folder, "map.csv"), OutputSpec(2, 2)) as sink:
    ...         sink.write(np.float32([[0, 1], [2, 3.5]]))
    ...     print(Path(folder, "map.csv").read_text().split())
    ['dre1,dre2', '0,1', '2,3.5']
    """
    format_ = FORMATS[check_writable(path, force=force)]
    with atomic_write(path) as part, format_.open(part, spec) as sink, _with_gaps(sink, spec) as whole:
        yield whole


@contextmanager
def open_stdout(spec: OutputSpec) -> Iterator[Sink]:
    """Print an embedding as CSV, in pieces, as ``open_sink`` writes it to a file.

    >>> import numpy as np
    >>> with open_stdout(OutputSpec(2, 2)) as sink:
    ...     sink.write(np.float32([[0, 1], [2, 3.5]]))
    dre1,dre2
    0,1
    2,3.5
    """
    with _with_gaps(DelimitedSink(sys.stdout, spec, ","), spec) as whole:
        yield whole
    sys.stdout.flush()


@contextmanager
def _with_gaps(sink: Sink, spec: OutputSpec) -> Iterator[Sink]:
    """Yield a sink that writes NaN for the rows that are not kept."""
    if spec.kept is None:
        yield sink
    else:
        gaps = GapSink(sink, spec.kept, spec.components)
        yield gaps
        gaps.close()


def check_writable(
    path: str | Path, suffixes: Iterable[str] | None = None, *, force: bool = False, read: Iterable[Path | None] = ()
) -> str:
    """Check that a file can be written, before a long computation. Of a link, the target is written and the link stays.

    Parameters
    ----------
    path : str or Path
        File to write.
    suffixes : iterable of str, default=None
        Allowed suffixes; None allows those of the formats for embeddings.
    force : bool, default=False
        Whether an existing file may be replaced.
    read : iterable of Path or None, default=()
        Input files, which are never replaced.

    Returns
    -------
    suffix : str
        The suffix that ``path`` has.

    Raises
    ------
    ValueError
        If the file cannot be written, or is an input.
    FileExistsError
        If it exists, without ``force``.

    Examples
    --------
    >>> check_writable("map.tsv.gz")
    '.tsv.gz'
    """
    path, suffixes = Path(path), list(suffixes or FORMATS)
    suffix = match_suffix(path.name, suffixes)
    if path.is_dir():
        raise ValueError(f"{path} is a folder: choose the name of a file")
    if suffix is None:
        example = f"{path.stem or 'map'}{suffixes[0]}"
        raise ValueError(f"{path}: expected a name that ends in {', '.join(suffixes)}, such as {example}")
    if path.exists() and any(each is not None and each.exists() and path.samefile(each) for each in read):
        raise ValueError(f"{path} is an input and would be overwritten: choose another name")
    check_absent(path, force=force)
    folder = link_target(path).parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise ValueError(f"{folder} is not a writable folder: create it or choose another")
    return suffix
