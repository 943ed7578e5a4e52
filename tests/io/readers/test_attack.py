"""Hostile and damaged data files are read or refused by our own error, within limits of time and memory."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from attack_data_files import ALLOWED, attack, counts
from data_file_attacks import HOSTILE

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are those of Linux")
for _library in ("h5py", "pandas", "pyarrow", "xlsxwriter", "zarr", "PIL"):
    pytest.importorskip(_library)


def check(cases: list[int], folder: Path) -> None:
    found = attack(cases, folder)
    assert not [each for each in found if each[1] not in ALLOWED]
    assert counts(found)["refused"] > len(cases) / 2


@pytest.mark.slow
def test_some_files_of_every_kind(tmp_path: Path) -> None:
    check([*range(0, len(HOSTILE), 4), *range(len(HOSTILE), len(HOSTILE) + 120)], tmp_path)


@pytest.mark.slow
def test_two_thousand_files(tmp_path: Path) -> None:
    check(list(range(2000)), tmp_path)
