"""A text notation for configuration objects: ``gaussian(30, scope=batch)`` and back, without loss.

A registry (of losses, affinities, encoders, ...) maps names to frozen dataclasses. Positional fields are written as positional
arguments. Keyword-only fields are written as ``key=value`` where they differ from their default. The text of an object thus
means the same as the Python expression that creates it.
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import pkgutil
import re
from numbers import Integral, Real
from typing import Any

TOKEN = re.compile(
    r"(?P<number>-?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?(?![\w.]))"
    r"|(?P<name>\w(?:[\w.]|-(?!>))*)"
    r"|(?P<space>\s+)"
    r"|(?P<sign>->|.)"  # any other character: the parser reports it together with what it expected in its place
)
CONSTANTS = {"true": True, "false": False, "none": None, "inf": float("inf")}


class NotationError(ValueError):
    """Syntax error in a text: shows the line and marks the offending token.

    Parameters
    ----------
    text : str
        The whole text.
    start, stop : int
        Where the offending token begins and ends.
    message : str
        What is wrong, and what would be right.
    """

    def __init__(self, text: str, start: int, stop: int, message: str) -> None:
        begin = text.rfind("\n", 0, start) + 1
        end = text.find("\n", start)
        line = text[begin : end if end >= 0 else len(text)]
        pointer = " " * (start - begin) + "^" * max(1, min(stop, begin + len(line)) - start)
        super().__init__(f"{message}\n    {line}\n    {pointer}")


@dataclasses.dataclass(frozen=True)
class Token:
    """One number, name or sign of a text, and where it starts."""

    kind: str  # "number", "name", "sign" or "end"
    text: str
    start: int


class Reader:
    """A cursor over the tokens of a text.

    Parameters
    ----------
    text : str

    Examples
    --------
    >>> reader = Reader("kl * 100")
    >>> reader.take().text, reader.accept("*"), reader.next.kind
    ('kl', True, 'number')
    """

    def __init__(self, text: str) -> None:
        self.text = text
        tokens = [Token(str(m.lastgroup), m.group(), m.start()) for m in TOKEN.finditer(text) if m.lastgroup != "space"]
        self.tokens = [*tokens, Token("end", "", len(text))]
        self.at = 0

    @property
    def next(self) -> Token:
        """The token at the cursor."""
        return self.tokens[self.at]

    def take(self) -> Token:
        """Return the token at the cursor and advance."""
        token = self.next
        self.at = min(self.at + 1, len(self.tokens) - 1)
        return token

    def accept(self, sign: str) -> bool:
        """Advance past this sign if it is next; return whether it was."""
        if self.next.kind == "sign" and self.next.text == sign:
            self.take()
            return True
        return False

    def expect(self, what: str, hint: str) -> Token:
        """Take a sign given literally, or a token of the kind ``"name"`` or ``"number"``; else raise an error with the hint."""
        token = self.next
        if what == (token.text if token.kind == "sign" else token.kind):
            return self.take()
        found = repr(token.text) if token.text else "the end of the text"
        raise self.error(token, f"expected {hint}, found {found}")

    def error(self, token: Token, message: str) -> NotationError:
        """The error that marks this token."""
        return NotationError(self.text, token.start, token.start + len(token.text), message)


class Registry:
    """The classes of one kind of object, by the names they have in texts.

    The modules of the package are imported when a name is first looked up, so adding a class means adding a file.

    Parameters
    ----------
    what : str
        The kind of object, for messages: ``"encoder"``.
    package : str
        The package that holds the classes: ``"dre.encoder"``.
    """

    def __init__(self, what: str, package: str) -> None:
        self.what = what
        self.package = package
        self._members: dict[str, type] = {}
        self._imported = False

    def add(self, name: str, member: type) -> None:
        """Register a class; a name can only stand for one class."""
        known = self._members.get(name)
        if known is not None and (known.__module__, known.__qualname__) != (member.__module__, member.__qualname__):
            raise ValueError(f"the {self.what} {name!r} is defined twice: {known.__qualname__} and {member.__qualname__}")
        self._members[name] = member

    def members(self) -> dict[str, type]:
        """All registered classes by name, in alphabetical order."""
        if not self._imported:  # once: a long schedule looks up hundreds of names
            package = importlib.import_module(self.package)
            for module in pkgutil.iter_modules(getattr(package, "__path__", [])):
                importlib.import_module(f"{self.package}.{module.name}")
            self._imported = True
        return dict(sorted(self._members.items()))

    def parse(self, text: str) -> Any:
        """Parse the text of one object.

        Parameters
        ----------
        text : str
            A name, or a call: ``"mlp"``, ``"mlp(256, depth=3)"``.

        Returns
        -------
        object
            An instance of the named class; ``registry.parse(str(thing)) == thing``.

        Raises
        ------
        NotationError
            If the text is malformed, or the class refuses a value. The message marks the token.
        """
        reader = Reader(text)
        thing = self.read(reader)
        if reader.next.kind != "end":
            raise reader.error(reader.next, f"unexpected {reader.next.text!r} after the {self.what}")
        return thing

    def read(self, reader: Reader) -> Any:
        """Read one object at the cursor and leave the cursor behind it."""
        members = self.members()
        article = "an" if self.what[0] in "aeiou" else "a"
        token = reader.expect("name", f"the name of {article} {self.what} ({', '.join(members)})")
        if token.text not in members:
            raise reader.error(token, unknown(self.what, token.text, list(members)))
        member = members[token.text]
        values, tokens = _read_arguments(reader, token.text, member)
        try:
            return member(**values)
        except (TypeError, ValueError) as problem:  # a class starts its message with the field, "scope='bach': ..."
            raise reader.error(tokens.get(str(problem).partition("=")[0], token), str(problem)) from problem


def _read_arguments(reader: Reader, name: str, member: type) -> tuple[dict[str, Any], dict[str, Token]]:
    """The values of a call by field, and the token that each value ends with."""
    fields = {field.name: field for field in dataclasses.fields(member) if field.init}
    positional = [field.name for field in fields.values() if not field.kw_only]
    values: dict[str, Any] = {}
    tokens: dict[str, Token] = {}
    if not reader.accept("("):
        return values, tokens
    while not reader.accept(")"):
        if values:
            reader.expect(",", "',' or ')'")
        elif reader.next.kind == "end":
            reader.expect(")", f"')' after the values of {name}")
        start, (key, value) = reader.next, read_argument(reader)
        if key is None:
            if len(values) >= len(positional):
                raise reader.error(start, f"{name} takes {len(positional)} positional value(s)")
            key = positional[len(values)]
        if key not in fields:
            raise reader.error(start, unknown(f"argument of {name}", key, list(fields)))
        if key in values:
            raise reader.error(start, f"{key} is given twice")
        values[key], tokens[key] = value, reader.tokens[reader.at - 1]
        if not admits(fields[key].type, value):
            raise reader.error(tokens[key], f"{key} of {name} must be {fields[key].type}, not {write_value(value)!r}")
    return values, tokens


def read_argument(reader: Reader) -> tuple[str | None, Any]:
    """Read ``value`` or ``key=value``; the key of a positional argument is None."""
    key = None
    if reader.next.kind == "name" and reader.tokens[reader.at + 1].text == "=":
        key = reader.take().text
        reader.take()
    value = read_value(reader)
    if reader.accept("/"):  # 16/32 is (16, 32), and 16/ is (16,)
        values = [value]
        while reader.next.kind in ("name", "number"):
            values.append(read_value(reader))
            reader.accept("/")
        value = tuple(values)
    return key, value


def read_value(reader: Reader) -> Any:
    """Read a number, a constant (``true``, ``false``, ``none``, ``inf``) or a word."""
    token = reader.take()
    if token.kind == "number":
        return float(token.text) if re.search(r"[.eE]", token.text) else int(token.text)
    if token.kind == "name":
        return CONSTANTS.get(token.text, token.text)
    found = repr(token.text) if token.text else "the end of the text"
    raise reader.error(token, f"expected a number or a word, found {found}")


def admits(annotation: Any, value: Any) -> bool:
    """Whether a parsed value fits the type of a field.

    A word needs ``str``, a fraction ``float``; ``int`` is accepted for ``float``. Types other than str, int, float, bool, tuple
    and None accept everything.
    """
    kinds = set(re.findall(r"\w+", re.sub(r"\[.*\]", "", annotation if isinstance(annotation, str) else annotation.__name__)))
    if not kinds <= {"str", "int", "float", "bool", "tuple", "None"}:
        return True
    return type(value).__name__.replace("NoneType", "None") in kinds or (type(value) is int and "float" in kinds)


def is_word(text: str) -> bool:
    """Whether a text is one token, a name or a number."""
    match = TOKEN.fullmatch(text)
    return match is not None and match.lastgroup in ("name", "number")


def write(thing: Any, name: str) -> str:
    """Write a dataclass instance as ``name(positional, key=value)``.

    Parameters
    ----------
    thing : dataclass instance
    name : str
        The name of its class in the registry.

    Returns
    -------
    str
        The text that ``Registry.parse`` reads back.
    """
    arguments = []
    for field in dataclasses.fields(thing):
        value = getattr(thing, field.name)
        if not field.kw_only:
            arguments.append(write_value(value))
        elif value != field.default:
            arguments.append(f"{field.name}={write_value(value)}")
    return f"{name}({', '.join(arguments)})" if arguments else name


def write_value(value: Any) -> str:
    """Write one value as ``read_argument`` reads it.

    Examples
    --------
    >>> write_value((16, 32)), write_value(None), write_value(0.5)
    ('16/32', 'none', '0.5')
    """
    if isinstance(value, tuple):
        return "/".join(map(write_value, value)) + ("/" if len(value) == 1 else "")
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Integral):  # numpy's numbers too
        return repr(int(value))
    return repr(float(value)) if isinstance(value, Real) else str(value)


def unknown(what: str, name: str, known: list[str]) -> str:
    """The message for an unknown name, with the known names and the closest of them.

    Examples
    --------
    >>> unknown("loss", "kll", ["ce", "kl"])
    "unknown loss 'kll'; known: ce, kl. Did you mean 'kl'?"
    """
    close = difflib.get_close_matches(name, known, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return f"unknown {what} {name!r}; known: {', '.join(known) or 'none'}.{hint}"
