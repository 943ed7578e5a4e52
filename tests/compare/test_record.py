"""Records: JSON without NaN, written completely or not at all, with their provenance."""

import json
import sys

import pytest

from dre.compare.record import provenance, write_json


def test_what_is_not_a_number_is_null(tmp_path):
    write_json(tmp_path / "a.json", {"scores": [1.0, float("nan")], "of": {"b": float("inf")}})
    assert json.loads((tmp_path / "a.json").read_text()) == {"scores": [1.0, None], "of": {"b": None}}


def test_a_record_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "a" / "b.json"
    write_json(path, {"value": 1})
    with pytest.raises(TypeError):
        write_json(path, {"value": object()})
    assert path.read_text() == '{\n "value": 1\n}\n'


def test_the_provenance_has_the_command_without_folders_and_the_versions(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/home/me/study.py", "--all"])
    found = provenance()
    assert found["command"] == "study --all"
    assert {"dre", "python", "torch", "numpy", "scikit-learn"} <= set(found["versions"])
    assert set(found["machine"]) == {"cpus", "gpu", "system"}
