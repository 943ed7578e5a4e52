"""Settings of the process that threads share: the strictest holds, and the last one out restores what was found."""

from __future__ import annotations

import os

import pytest
import torch

from dre.runtime import full_float32, tf32_products
from dre.runtime.torch_state import ProcessSetting, plain_torch


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_value_found_comes_back_in_whatever_order_threads_leave(order):
    held = ["before"]
    setting = ProcessSetting(lambda: held[0], lambda value: held.__setitem__(0, value), lambda needed: needed[-1])
    contexts = [setting("one"), setting("other")]
    for context in contexts:
        context.__enter__()
    for i in order:
        assert held[0] != "before"
        contexts[i].__exit__(None, None, None)
    assert held == ["before"]


def test_full_products_are_not_weakened_by_a_thread_that_allows_less():
    before = torch.get_float32_matmul_precision()
    full, fast = full_float32(), tf32_products()
    full.__enter__()
    fast.__enter__()
    assert torch.get_float32_matmul_precision() == "highest"
    full.__exit__(None, None, None)
    assert torch.get_float32_matmul_precision() == "high"
    fast.__exit__(None, None, None)
    assert torch.get_float32_matmul_precision() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system can't fork")
def test_a_child_that_was_forked_inside_has_the_settings_from_outside():
    torch.set_default_dtype(torch.float64)
    try:
        with plain_torch():
            child = os.fork()
            if child == 0:
                os._exit(0 if torch.get_default_dtype() == torch.float64 else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            assert torch.get_default_dtype() == torch.float32
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
