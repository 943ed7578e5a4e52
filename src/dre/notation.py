"""Objects written as calls, ``gaussian(30, scope=batch)``, and read back without loss.

A family (losses, affinities, encoders, ...) is the set of frozen dataclasses that can be named in such a text. Positional
fields are written as positional arguments, keyword-only fields as ``key=value`` where they differ from their default, so
that the text of an object means the same as the Python that would make it.
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import pkgutil
import re
from numbers import Integral, Real
from typing import Any, TypeVar

T = TypeVar("T")

TOKEN = re.compile(
    r"(?P<number>-?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?(?![\w.]))"
    r"|(?P<name>\w(?:[\w.]|-(?!>))*)"
    r"|(?P<space>\s+)"
    r"|(?P<sign>->|.)"  # one that means nothing is an error where it stands, which says what should stand there
)


class NotationError(ValueError):
    """A text that can't be read: shows the line, points at the place and says what would be right."""

    def __init__(self, text: str, start: int, stop: int, message: str) -> None:
        begin = text.rfind("\n", 0, start) + 1
        end = text.find("\n", start)
        line = text[begin : end if end >= 0 else len(text)]
        pointer = " " * (start - begin) + "^" * max(1, min(stop, begin + len(line)) - start)
        super().__init__(f"{message}\n    {line}\n    {pointer}")


@dataclasses.dataclass(frozen=True)
class Token:
    kind: str  # "number", "name", "sign" or "end"
    text: str
    start: int


class Reader:
    """A cursor over the tokens of one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        pieces = [Token(str(m.lastgroup), m.group(), m.start()) for m in TOKEN.finditer(text) if m.lastgroup != "space"]
        self.tokens = [*pieces, Token("end", "", len(text))]
        self.at = 0

    @property
    def next(self) -> Token:
        return self.tokens[self.at]

    def take(self) -> Token:
        token = self.next
        self.at = min(self.at + 1, len(self.tokens) - 1)
        return token

    def accept(self, sign: str) -> bool:
        if self.next.kind == "sign" and self.next.text == sign:
            self.take()
            return True
        return False

    def expect(self, what: str, hint: str) -> Token:
        """Take a sign given literally, or a token of the kind ``"name"`` or ``"number"``."""
        token = self.next
        if what == (token.text if token.kind == "sign" else token.kind):
            return self.take()
        found = repr(token.text) if token.text else "the end of the text"
        raise self.error(token, f"expected {hint}, found {found}")

    def error(self, token: Token, message: str) -> NotationError:
        return NotationError(self.text, token.start, token.start + len(token.text), message)


class Registry:
    """The classes that one kind of object can be, by the name they have in texts.

    The folder of a family is searched when a name is first looked up: a new file in it is all that it takes to add a member.
    """

    def __init__(self, what: str, package: str) -> None:
        self.what = what
        self.package = package
        self._members: dict[str, type] = {}

    def add(self, name: str, member: type) -> None:
        known = self._members.get(name)
        if known is not None and (known.__module__, known.__qualname__) != (member.__module__, member.__qualname__):
            raise ValueError(f"the {self.what} {name!r} is defined twice: {known.__qualname__} and {member.__qualname__}")
        self._members[name] = member

    def members(self) -> dict[str, type]:
        package = importlib.import_module(self.package)
        for module in pkgutil.iter_modules(getattr(package, "__path__", [])):
            importlib.import_module(f"{self.package}.{module.name}")
        return dict(sorted(self._members.items()))

    def parse(self, text: str) -> Any:
        """Read one object: ``family.parse(str(thing)) == thing``."""
        reader = Reader(text)
        thing = self.read(reader)
        if reader.next.kind != "end":
            raise reader.error(reader.next, f"unexpected {reader.next.text!r} after the {self.what}")
        return thing

    def read(self, reader: Reader) -> Any:
        token = reader.expect("name", f"the name of a {self.what} ({', '.join(self.members())})")
        member = self.members().get(token.text)
        if member is None:
            raise reader.error(token, unknown(self.what, token.text, list(self.members())))
        return self._call(reader, token, member)

    def _call(self, reader: Reader, token: Token, member: type) -> Any:
        fields = {field.name: field for field in dataclasses.fields(member) if field.init}
        positional = [field.name for field in fields.values() if not field.kw_only]
        given: dict[str, Any] = {}
        places: dict[str, Token] = {}
        if reader.accept("("):
            while not reader.accept(")"):
                if given:
                    reader.expect(",", "',' or ')'")
                start, (key, value) = reader.next, read_argument(reader)
                if key is None:
                    if len(given) >= len(positional):
                        raise reader.error(start, f"{token.text} takes {len(positional)} positional value(s)")
                    key = positional[len(given)]
                if key not in fields:
                    raise reader.error(start, unknown(f"argument of {token.text}", key, list(fields)))
                if key in given:
                    raise reader.error(start, f"{key} is given twice")
                given[key], places[key] = value, reader.tokens[reader.at - 1]
                if not admits(fields[key].type, value):
                    raise reader.error(
                        places[key], f"{key} of {token.text} must be {fields[key].type}, not {write_value(value)!r}"
                    )
        try:
            return member(**given)
        except (TypeError, ValueError) as problem:  # our messages start with the name of what is wrong: "over='bach': ..."
            raise reader.error(places.get(str(problem).partition("=")[0], token), str(problem)) from problem


def read_argument(reader: Reader) -> tuple[str | None, Any]:
    key = None
    if reader.next.kind == "name" and reader.tokens[reader.at + 1].text == "=":
        key = reader.take().text
        reader.take()
    value = read_value(reader)
    if reader.accept("/"):  # 16/32 is (16, 32), and 16/ is (16,)
        value = (value,)
        while reader.next.kind in ("name", "number"):
            value = (*value, read_value(reader))
            reader.accept("/")
    return key, value


def read_value(reader: Reader) -> Any:
    token = reader.take()
    if token.kind == "number":
        return float(token.text) if re.search(r"[.eE]", token.text) else int(token.text)
    if token.kind == "name":
        return {"true": True, "false": False, "none": None, "inf": float("inf")}.get(token.text, token.text)
    raise reader.error(token, "expected a number or a word")


def admits(annotation: Any, value: Any) -> bool:
    """Whether a value from a text fits a field: a word needs ``str``, a fraction ``float``; unusual annotations admit all."""
    kinds = set(re.findall(r"\w+", re.sub(r"\[.*\]", "", annotation if isinstance(annotation, str) else annotation.__name__)))
    if not kinds <= {"str", "int", "float", "bool", "tuple", "None"}:
        return True
    return type(value).__name__.replace("NoneType", "None") in kinds or (type(value) is int and "float" in kinds)


def is_word(text: str) -> bool:
    """Whether a text is read back as one name or number."""
    match = TOKEN.fullmatch(text)
    return match is not None and match.lastgroup in ("name", "number")


def write_value(value: Any) -> str:
    if isinstance(value, tuple):
        return "/".join(map(write_value, value)) + ("/" if len(value) == 1 else "")
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Integral):
        return repr(int(value))
    return repr(float(value)) if isinstance(value, Real) else str(value)  # numpy's numbers too


def write(thing: Any, name: str) -> str:
    """The text of a dataclass, ``name(positional, key=value)``."""
    arguments = []
    for field in dataclasses.fields(thing):
        value = getattr(thing, field.name)
        if not field.kw_only:
            arguments.append(write_value(value))
        elif value != field.default:
            arguments.append(f"{field.name}={write_value(value)}")
    return f"{name}({', '.join(arguments)})" if arguments else name


def unknown(what: str, name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return f"unknown {what} {name!r}; known: {', '.join(known) or 'none'}.{hint}"
