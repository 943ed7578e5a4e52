"""Write the hashes of all pinned packages: ``constraints.lock`` for ``constraints.txt``, and likewise in this folder.

python release/lock.py            write the lock files: `make lock`
python release/lock.py --check    fail if the index now lists other files than the lock files

A lock file has the hash of every wheel and source archive of a version, for all platforms and all versions of Python. The
index is the one that pip is configured to use. Additional indexes are not asked: a file that only they have is not trusted.
"""

from __future__ import annotations

import ast
import ssl
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urldefrag
from urllib.request import urlopen

from packaging.utils import InvalidSdistFilename, InvalidWheelFilename, parse_sdist_filename, parse_wheel_filename
from packaging.version import InvalidVersion, Version
from pip._internal.models.index import PyPI  # the default of pip, which has no public name

from pins import LISTS, ROOT, Pin, lock_of, parse

SCOPES = ("global", "install", ":env:")  # of pip's settings; a later one overrides those before it


class Links(HTMLParser):
    """The links of an index page: text, address, and whether the file was withdrawn ("yanked")."""

    def __init__(self) -> None:
        super().__init__()
        self.files: list[tuple[str, str, bool]] = []
        self.address: tuple[str, bool] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            values = dict(attrs)
            self.address = (values.get("href") or "", "data-yanked" in values)

    def handle_data(self, data: str) -> None:
        if self.address is not None and data.strip():
            self.files.append((data.strip(), *self.address))
            self.address = None


def pip_setting(name: str, default: str = "") -> str:
    """Return a setting of pip, from its files and the environment."""
    listed = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True).stdout
    settings = dict(line.split("=", 1) for line in listed.splitlines() if "=" in line)
    found = [settings[f"{scope}.{name}"] for scope in SCOPES if f"{scope}.{name}" in settings]
    return str(ast.literal_eval(found[-1])) if found else default


def configured_index() -> tuple[str, str]:
    """Return the address of the index and the file of certificates that pip uses; the latter may be empty."""
    return pip_setting("index-url", PyPI.simple_url), pip_setting("cert")


def index_page(index: str, certificates: str, name: str) -> str:
    """Return the page of a package."""
    local = index.startswith("file:")  # a folder does not serve its index.html
    context = None if local else ssl.create_default_context(cafile=certificates or None)
    with urlopen(f"{index.rstrip('/')}/{name}/{'index.html' if local else ''}", context=context, timeout=60) as answer:
        return str(answer.read().decode())


def version_of(file: str) -> Version | None:
    """Return the version in the name of a file, or None for formats that pip no longer installs.

    >>> version_of("six-1.16.0-py2.py3-none-any.whl"), version_of("six-1.16.0.tar.gz"), version_of("six-1.16.0.win32.exe")
    (<Version('1.16.0')>, <Version('1.16.0')>, None)
    """
    try:
        return parse_wheel_filename(file)[1] if file.endswith(".whl") else parse_sdist_filename(file)[1]
    except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
        return None


def hashes(page: str, pin: Pin) -> list[str]:
    """Return the hashes of all files of the pinned version."""
    links = Links()
    links.feed(page)
    files = [(address, yanked) for text, address, yanked in links.files if version_of(text) == Version(pin.version)]
    if not files:
        raise ValueError(f"{pin.name}=={pin.version}: the index lists no such version")
    if any(yanked for _, yanked in files):
        raise ValueError(f"{pin.name}=={pin.version} was withdrawn by its authors: pin another version")
    digests = [urldefrag(address).fragment for address, _ in files]
    if not all(digest.startswith("sha256=") for digest in digests):
        raise ValueError(f"{pin.name}=={pin.version}: the index gives no sha256 hash for some files")
    return sorted({digest.replace("=", ":", 1) for digest in digests})


def locked(pins: Path, index: str, certificates: str) -> str:
    """Return the text of the lock file of a list of pins."""
    wanted = [pin for pin in parse(pins.read_text()) if pin.hashed]
    with ThreadPoolExecutor(8) as pool:
        pages = list(pool.map(partial(index_page, index, certificates), [pin.name for pin in wanted]))
    lines = [f"# Hashes of the versions in {pins.name}. Written by `make lock`; do not edit."]
    for pin, page in zip(wanted, pages, strict=True):
        lines.append(" \\\n".join([f"{pin.name}=={pin.version}", *(f"    --hash={digest}" for digest in hashes(page, pin))]))
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write or check the lock file of every list of pins."""
    index, certificates = configured_index()
    for pins in LISTS:
        text, lock = locked(pins, index, certificates), lock_of(pins)
        if "--check" not in sys.argv[1:]:
            lock.write_text(text)
        elif not lock.exists() or lock.read_text() != text:
            raise ValueError(f"{lock.relative_to(ROOT)} differs from the index: see what changed with `make lock` and git diff")
        print(f"{lock.relative_to(ROOT)}: {text.count('--hash')} files of {text.count('==')} packages")


if __name__ == "__main__":
    try:
        main()
    except (ValueError, URLError) as error:
        raise SystemExit(f"error: {error}") from error
