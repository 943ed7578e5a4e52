"""Code whose random draws can't be seen from Python: TorchScript, compiled code, and code that sets the global random state."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType

import torch
from torch import nn

# Names of code that reads or sets torch's global random state itself.
STATES = {"manual_seed", "fork_rng", "get_rng_state", "set_rng_state", "default_generator"}
FUNCTIONS = (FunctionType, MethodType, partial, torch.jit.ScriptFunction)


def is_opaque(part: object) -> bool:
    """Whether a module or a function contains such code.

    Looks at submodules, attributes, and what their code calls by name; not at code of torch, nor at what is found at run time.

    Examples
    --------
    >>> is_opaque(nn.Sequential(nn.Linear(3, 2), nn.Dropout())), is_opaque(lambda x: torch.manual_seed(0))
    (False, True)
    """
    waiting, seen = [part], dict[int, object]()  # what is seen stays alive, and so its id its own
    while waiting:
        each = waiting.pop()
        if id(each) not in seen:
            seen[id(each)] = each
            if _is_compiled(each) or not STATES.isdisjoint(_names(each)):
                return True
            waiting += _parts(each)
    return False


def _is_compiled(part: object) -> bool:
    if isinstance(part, (torch.jit.ScriptModule, torch.jit.ScriptFunction)) or type(part).__name__ == "OptimizedModule":
        return True
    if isinstance(part, nn.Module):
        return part._compiled_call_impl is not None  # what nn.Module.compile sets
    return isinstance(part, FunctionType) and "_torchdynamo_orig_callable" in vars(part)  # what torch.compile returns


def _names(part: object) -> set[str]:
    """Names of globals and attributes in the code of a function."""
    return set().union(*(code.co_names for code in _codes(part.__code__))) if isinstance(part, FunctionType) else set()


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield a code and those of the functions inside of it."""
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each)


def _parts(part: object) -> Iterator[object]:
    """Yield the modules and functions of which a module or a function consists."""
    if isinstance(part, nn.Module):
        yield from part.children()
        values = [*vars(part).values(), *_methods(type(part))]
    elif isinstance(part, MethodType):
        values = [part.__self__, part.__func__]
    elif isinstance(part, partial):
        values = [part.func, *part.args, *part.keywords.values()]
    elif isinstance(part, FunctionType):
        values = list(_named_in(part))
    else:  # an object that is called, such as an augmentation
        values = [*getattr(part, "__dict__", {}).values(), *([part.__call__] if callable(part) else [])]
    yield from (each for each in values if isinstance(each, (nn.Module, *FUNCTIONS)) and not _is_function_of_torch(each))


def _methods(kind: type) -> Iterator[object]:
    """Yield the functions of a class that may run in a forward pass, but for those of torch."""
    for each in kind.__mro__:
        if not _is_of_torch(each.__module__):
            for name, value in vars(each).items():
                if name != "__init__":
                    yield getattr(value, "__func__", getattr(value, "fget", value))  # of a static method, of a property


def _named_in(function: FunctionType) -> Iterator[object]:
    """Yield what the code of a function names: globals, what it takes from imported modules, and what it encloses."""
    names = _names(function)
    for name in names & function.__globals__.keys():
        value = function.__globals__[name]
        if isinstance(value, ModuleType):
            yield from (vars(value)[each] for each in names & vars(value).keys())
        yield value
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not assigned yet
            continue


def _is_function_of_torch(part: object) -> bool:
    return isinstance(part, FunctionType) and not _is_compiled(part) and _is_of_torch(part.__module__)


def _is_of_torch(module: str | None) -> bool:
    return (module or "").partition(".")[0] == "torch"
