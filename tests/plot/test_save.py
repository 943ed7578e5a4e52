"""A saved plot has the format of its suffix, and is complete or absent."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dre import plot

BEGINS = {".png": b"\x89PNG\r\n\x1a\n", ".svg": b"<?xml", ".pdf": b"%PDF-"}
ENDS = {".png": b"IEND\xaeB`\x82", ".svg": b"</svg>", ".pdf": b"%%EOF"}
Y = np.random.default_rng(0).normal(size=(50, 2))


@pytest.mark.parametrize("suffix", list(BEGINS))
def test_the_name_says_the_format(tmp_path: Path, suffix: str) -> None:
    plot.save(plot.scatter(Y), tmp_path / f"a{suffix}")
    written = (tmp_path / f"a{suffix}").read_bytes().strip()
    assert written.startswith(BEGINS[suffix])
    assert written.endswith(ENDS[suffix])


@pytest.mark.parametrize("suffix", [".svg", ".pdf"])
def test_many_dots_are_pixels_also_in_a_drawing(tmp_path: Path, suffix: str) -> None:
    plot.save(plot.scatter(np.random.default_rng(0).normal(size=(50_000, 2))), tmp_path / f"a{suffix}")
    assert (tmp_path / f"a{suffix}").stat().st_size < 1_500_000


def test_an_existing_file_is_overwritten_on_request_alone(tmp_path: Path) -> None:
    path = tmp_path / "map.png"
    path.write_bytes(b"as it was")
    with pytest.raises(FileExistsError, match="force=True"):
        plot.save(plot.scatter(Y).figure, path)
    assert path.read_bytes() == b"as it was"
    plot.save(plot.scatter(Y).figure, path, force=True)
    assert path.read_bytes() != b"as it was"


@pytest.mark.parametrize("problem", [KeyboardInterrupt, OSError])
def test_what_is_stopped_leaves_no_part_and_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: type[BaseException]
) -> None:
    path = tmp_path / "a.png"
    path.write_text("mine")

    def stopped(self: object, part: Path, **named: object) -> None:
        Path(part).write_bytes(b"half")
        raise problem

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", stopped)
    with pytest.raises(problem):
        plot.save(plot.scatter(Y), path, force=True)
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_text() == "mine"
