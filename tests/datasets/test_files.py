"""Files of datasets: the order of the folders, the checksums, the downloads, and the errors."""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import sys
import zipfile
from pathlib import Path

import pytest
from stand_ins import Network, kept

from dre.datasets.files import CorruptFileError, DatasetNotFoundError, RemoteFile, locate, read_file, search_folders

URL = "https://example.org/a.bin"
GOOD = b"as published"
FILE = RemoteFile("a.bin", "letters", URL, "sha256:" + hashlib.sha256(GOOD).hexdigest())


def put(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_the_folder_comes_before_the_variable_and_that_before_the_cache(
    network: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRE_DATA", str(tmp_path / "variable"))
    (tmp_path / "folder").mkdir()
    order = [
        tmp_path / "folder" / "letters" / "a.bin",
        tmp_path / "folder" / "a.bin",
        tmp_path / "variable" / "letters" / "a.bin",
        tmp_path / "variable" / "a.bin",
        tmp_path / "cache" / "letters" / "a.bin",
    ]
    assert [each / "a.bin" for each in search_folders("letters", tmp_path / "folder")] == order
    for path in reversed(order):
        put(path, GOOD)
        assert locate(FILE, tmp_path / "folder") == path
    assert network.asked == []


def test_what_is_nowhere_is_downloaded_once_and_kept_in_the_cache(network: Network, tmp_path: Path) -> None:
    network.pages[URL] = GOOD
    assert read_file(FILE) == GOOD
    assert read_file(FILE) == GOOD
    assert network.asked == [URL]
    assert kept(tmp_path / "cache" / "letters") == ["a.bin"]


def test_nothing_is_written_into_a_folder_of_the_user(network: Network, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    network.pages[URL] = GOOD
    read_file(FILE, tmp_path / "folder")
    assert list((tmp_path / "folder").iterdir()) == []


def test_without_network_and_copy_the_error_says_what_from_where_and_where_to(
    network: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRE_DATA", str(tmp_path / "variable"))
    with pytest.raises(DatasetNotFoundError) as raised:
        read_file(FILE)
    message = str(raised.value)
    for part in (
        "a.bin is missing",
        "no network",
        URL,
        str(tmp_path / "variable" / "letters"),
        str(tmp_path / "cache"),
        "DRE_DATA",
    ):
        assert part in message
    assert isinstance(raised.value, FileNotFoundError)
    assert f"DRE_DATA={tmp_path / 'variable'} is not a folder" in message
    assert kept(tmp_path / "cache" / "letters") == []  # what had arrived before the end is gone


def test_a_variable_that_names_no_folder_is_no_error_where_the_file_is_found(
    network: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for wrong in (tmp_path / "nowhere", put(tmp_path / "file", b"")):
        monkeypatch.setenv("DRE_DATA", str(wrong))
        with pytest.raises(DatasetNotFoundError, match=re.escape(f"DRE_DATA={wrong} is not a folder")):
            read_file(FILE)
        put(tmp_path / "folder" / "a.bin", GOOD)
        assert read_file(FILE, tmp_path / "folder") == GOOD
    network.pages[URL] = GOOD
    assert read_file(FILE) == GOOD


def test_a_variable_that_names_a_folder_is_not_found_fault_with(
    network: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRE_DATA", str(tmp_path))
    with pytest.raises(DatasetNotFoundError) as raised:
        read_file(FILE)
    assert "is not a folder" not in str(raised.value)


def test_without_pooch_the_error_says_how_to_install_it(
    network: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pooch", None)
    monkeypatch.delenv("DRE_CACHE")
    with pytest.raises(DatasetNotFoundError, match=r"deep-recursive-embedding\[datasets\]"):
        read_file(FILE)
    put(tmp_path / "folder" / "a.bin", GOOD)
    assert read_file(FILE, tmp_path / "folder") == GOOD


def test_a_folder_that_does_not_exist_is_said_to(network: Network, tmp_path: Path) -> None:
    with pytest.raises(DatasetNotFoundError, match="nowhere"):
        read_file(FILE, tmp_path / "nowhere")
    assert network.asked == []


def test_a_corrupt_copy_is_named_with_both_checksums_and_a_remedy(network: Network, tmp_path: Path) -> None:
    path = put(tmp_path / "folder" / "a.bin", b"as publishe?")
    with pytest.raises(CorruptFileError) as raised:
        read_file(FILE, tmp_path / "folder")
    found = hashlib.sha256(b"as publishe?").hexdigest()
    for part in (str(path), found, FILE.checksum.removeprefix("sha256:"), "Delete it", URL):
        assert part in str(raised.value)
    assert network.asked == []
    assert path.read_bytes() == b"as publishe?"


def test_a_corrupt_copy_in_the_cache_is_replaced(network: Network, tmp_path: Path) -> None:
    path = put(tmp_path / "cache" / "letters" / "a.bin", GOOD[:-1])
    network.pages[URL] = GOOD
    assert read_file(FILE) == GOOD
    assert path.read_bytes() == GOOD


def test_a_corrupt_download_never_reaches_the_cache(network: Network, tmp_path: Path) -> None:
    network.pages[URL] = b"an error page"
    with pytest.raises(CorruptFileError, match=URL):
        read_file(FILE)
    assert kept(tmp_path / "cache" / "letters") == []


def test_no_download_where_the_user_forbids_it(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRE_OFFLINE", "1")
    network.pages[URL] = GOOD
    with pytest.raises(DatasetNotFoundError, match="DRE_OFFLINE"):
        read_file(FILE)
    assert network.asked == []


def test_the_checksum_may_be_of_what_a_gz_holds(network: Network, tmp_path: Path) -> None:
    file = RemoteFile("a.gz", "letters", URL, "md5:" + hashlib.md5(GOOD).hexdigest(), checks_content=True)
    for content in (gzip.compress(GOOD, mtime=1), gzip.compress(GOOD, 1, mtime=2)):  # copies whose bytes differ
        put(tmp_path / "a.gz", content)
        assert read_file(file, tmp_path) == GOOD
    whole = gzip.compress(GOOD)
    for damaged in (whole[:-3], b"no gzip", whole[:12] + b"\xff\xff" + whole[14:], gzip.compress(b"another")):
        put(tmp_path / "a.gz", damaged)
        with pytest.raises(CorruptFileError, match=r"a\.gz"):
            read_file(file, tmp_path)


def test_a_zip_without_a_published_checksum_is_checked_by_its_own(network: Network, tmp_path: Path) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a.csv", "1,2,3")
    content = packed.getvalue()
    file = RemoteFile("a.zip", "letters", URL)
    for damaged in (content.replace(b"1,2,3", b"1,2,4"), content[:-10], b"<html>sorry</html>"):
        network.pages[URL] = damaged
        with pytest.raises(CorruptFileError, match=URL):
            locate(file)
    network.pages[URL] = content
    assert locate(file).read_bytes() == content
