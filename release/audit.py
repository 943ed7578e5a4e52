"""Look up known vulnerabilities of the pinned packages with pip-audit: ``make audit``.

pip-audit alone reports success if the advisory service knows none of the packages, as behind a mirror of PyPI that does not
offer it. Here a package that could not be looked up is an error.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from pins import ROOT

PINS = ("constraints.txt", "release/audit.txt")


def audit(pins: str) -> dict[str, Any]:
    """Return the report of pip-audit on a list of pins."""
    words = ["--no-deps", "--disable-pip", "--progress-spinner", "off", "--format", "json", "--requirement", str(ROOT / pins)]
    done = subprocess.run([sys.executable, "-m", "pip_audit", *words], capture_output=True, text=True, check=False)
    try:
        return dict(json.loads(done.stdout))
    except ValueError:
        reason = (done.stderr.strip() or "no output").splitlines()[-1]
        raise SystemExit(f"error: {pins} was not audited, pip-audit failed: {reason}") from None


def findings(report: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return a line for each vulnerability, and the reasons for packages that were not looked up.

    >>> bad = {"name": "a", "version": "1", "vulns": [{"id": "CVE-1", "fix_versions": ["1.1"]}]}
    >>> findings({"dependencies": [bad, {"name": "b", "skip_reason": "not found"}]})
    (['a 1: CVE-1, fixed in 1.1'], ['not found'])
    """
    packages = report["dependencies"]
    known = [
        f"{each['name']} {each['version']}: {found['id']}, fixed in {', '.join(found['fix_versions']) or 'no version yet'}"
        for each in packages
        for found in each.get("vulns", [])
    ]
    return known, [each["skip_reason"] for each in packages if "skip_reason" in each]


def main() -> int:
    """Audit all lists; 1 if a package has a known vulnerability, or could not be looked up."""
    failed = False
    for pins in PINS:
        report = audit(pins)
        known, skipped = findings(report)
        total = len(report["dependencies"])
        print(f"{pins}: {total - len(skipped)} of {total} packages looked up, {len(known)} known vulnerabilities")
        print("".join(f"  {line}\n" for line in known), end="")
        if skipped:
            print(f"error: {len(skipped)} packages of {pins} were not audited. The first reason: {skipped[0]}")
            print("  pip-audit asks PyPI itself for advisories: is it reachable from here?")
        failed |= bool(known or skipped)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
