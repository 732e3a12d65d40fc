"""Options of a command, derived from the signature and the docstring of a function."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import field, make_dataclass
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import docstring_parser
from cyclopts import Group, Parameter

Class = TypeVar("Class", bound=type)


def options_of(
    *functions: Callable[..., Any],
    group: Group,
    hints: Iterable[type] = (),
    names: Container[str] | None = None,
    leave_out: Container[str],
    types: Mapping[str, Any],
    texts: Mapping[str, str],
) -> Callable[[Class], Class]:
    """Return a decorator that adds the arguments of functions to a frozen dataclass.

    `hints` have annotations of arguments that a function takes by ``**options``.  Of the `names`,
    or of all but those to leave out, an argument becomes an option if the command line has words
    for its values.  It has the default None if the functions have different ones.  `types` and
    `texts` take precedence over annotations and docstrings.
    """
    annotations: dict[str, Any] = {}
    for owner in (*functions, *hints):
        annotations |= get_type_hints(owner)
    kinds = {name: in_words(hint) for name, hint in annotations.items()} | dict(types)
    described = {name: text for each in functions for name, text in descriptions(each).items()}
    defaults: dict[str, Any] = {}
    for function in functions:
        for name, parameter in inspect.signature(function).parameters.items():
            if name not in leave_out and (names is None or name in names):
                same = defaults.setdefault(name, parameter.default) == parameter.default
                defaults[name] = parameter.default if same else None
    options = [
        option(name, kinds[name], default, texts.get(name, described.get(name, "")))
        for name, default in defaults.items()
        if kinds.get(name) is not None
    ]

    def decorate(cls: Class) -> Class:
        body = {"__doc__": cls.__doc__, "__module__": cls.__module__}
        settings: dict[str, Any] = {"frozen": True, "kw_only": True, "namespace": body}
        with_options: Any = make_dataclass(cls.__name__, options, bases=(cls,), **settings)
        decorated: Class = Parameter(name="*", group=group)(with_options)
        return decorated

    return decorate


def option(name: str, kind: Any, default: Any, text: str) -> Any:
    """Return the field of an option, as `make_dataclass` takes it."""
    shown: dict[str, Any] = {"help": text}
    if kind is bool:
        shown["show_default"] = False
        if default:
            shown["negative"] = f"--no-{name.replace('_', '-')}"
    if default is None:
        kind |= None
    return name, Annotated[kind, Parameter(**shown)], field(default=default)


def in_words(hint: Any) -> Any:
    """Return the members of a type that the command line has words for, as a type; or None."""
    members = list(get_args(hint)) if get_origin(hint) in (Union, UnionType) else [hint]
    members += [Path] if any(get_origin(each) is os.PathLike for each in members) else []
    words = [word for each in members if get_origin(each) is Literal for word in get_args(each)]
    if words and bool in members:
        words += ["true", "false"]
    kinds: list[Any] = [Literal[tuple(words)]] if words else []
    kinds += [each for each in members if each in (int, float, Path)]
    if not kinds:
        kinds = [each for each in members if each in (str, bool)]
    if not kinds:
        return None
    return Union[tuple(kinds) + ((None,) if type(None) in members else ())]  # noqa: UP007


def descriptions(function: Callable[..., Any]) -> dict[str, str]:
    """Return the first sentence that the docstring of a function says of each argument."""
    parsed = docstring_parser.parse(
        inspect.getdoc(function) or "", style=docstring_parser.DocstringStyle.NUMPYDOC
    )
    return {
        name.strip(): first_sentence(each.description or "")
        for each in parsed.params
        for name in each.arg_name.split(",")
    }


def first_sentence(text: str) -> str:
    """Return the text up to its first full stop that ends a line or stands before two spaces."""
    (sentence,) = re.findall(r"^.*?(?:\.(?=\s\s|\n|$)|$)", text.strip(), flags=re.DOTALL)[:1]
    return " ".join(sentence.split())
