"""Tasic 2018: the published labels, their colours, and the published maps."""

from __future__ import annotations

import dataclasses
import hashlib
import io
from pathlib import Path

import numpy as np
import pytest

from dre.datasets import CorruptFileError, tasic2018

pytestmark = pytest.mark.usefixtures("network")
LABELS = """sample_name,cluster_id,cluster_color,cluster_label,class_id,class_color,class_label,Gad2_log10_cpm
a,1,#000001,Sst Myh8 Etv1 ,1,#EF4136,GABAergic,2.5
b,2,#000002,L5 IT ALM Npw,2,#27AAE1,Glutamatergic,0
c,1,#000001,Sst Myh8 Etv1 ,1,#EF4136,GABAergic,2.4
"""


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Labels and one map of three cells, in the published form."""
    written = io.BytesIO()
    np.save(written, np.arange(6.0).reshape(3, 2))
    one = {"tsne-p30": tasic2018.MAPS["tsne-p30"]}
    for file, content in ((tasic2018.LABELS, LABELS.encode()), (one["tsne-p30"], written.getvalue())):
        path = tmp_path / "data" / "tasic2018" / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        right = dataclasses.replace(file, checksum=f"sha256:{hashlib.sha256(content).hexdigest()}")
        if file is tasic2018.LABELS:
            monkeypatch.setattr(tasic2018, "LABELS", right)
        else:
            monkeypatch.setattr(tasic2018, "MAPS", {"tsne-p30": right})
    return tmp_path / "data"


@pytest.mark.parametrize("below", [".", "tasic2018"])
def test_published_maps_come_with_both_levels_of_labels_and_their_colours(published: Path, below: str) -> None:
    found = tasic2018.reference_maps(published / below)
    np.testing.assert_array_equal(found.maps["tsne-p30"], np.arange(6.0).reshape(3, 2))
    assert list(found.labels.samples) == ["a", "b", "c"]
    assert {level: list(names) for level, names in found.labels.levels.items()} == {
        "class": ["GABAergic", "Glutamatergic", "GABAergic"],
        "cluster": ["Sst Myh8 Etv1", "L5 IT ALM Npw", "Sst Myh8 Etv1"],
    }
    assert found.labels.colors == {
        "class": {"GABAergic": "#EF4136", "Glutamatergic": "#27AAE1"},
        "cluster": {"L5 IT ALM Npw": "#000002", "Sst Myh8 Etv1": "#000001"},
    }


def test_corrupt_labels_and_maps_are_found_out(published: Path) -> None:
    for file in (tasic2018.MAPS["tsne-p30"], tasic2018.LABELS):
        path = published / "tasic2018" / file.name
        content = path.read_bytes()
        path.write_bytes(content[:-1])
        with pytest.raises(CorruptFileError, match=path.name):
            tasic2018.reference_maps(published)
        path.write_bytes(content)
