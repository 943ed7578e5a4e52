"""Devices that this machine lacks are refused in one line, with the remedy."""

from __future__ import annotations

import pytest
import torch

from dre.runtime import resolve_device


@pytest.mark.parametrize("name", ["mps", "mps:0", "vulkan", "hpu", "meta", "cuda", "nonsense"])
def test_a_device_that_is_missing_is_refused_in_one_line(name, monkeypatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    if name.startswith("mps"):
        monkeypatch.setattr(torch, "zeros", no_kernel)
    with pytest.raises(ValueError, match=rf"^device='{name}'") as problem:
        resolve_device(name)
    text = str(problem.value)
    assert "\n" not in text
    assert len(text) < 200
    assert "'cpu'" in text


def no_kernel(*size: int, device: torch.device) -> torch.Tensor:
    listed = ", ".join(f"Backend{i}" for i in range(100))
    raise NotImplementedError(
        f"Could not run 'empty' with arguments from the '{device}' backend. It is available for: {listed}\n"
    )
