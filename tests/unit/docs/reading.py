"""Reads a program without running it, and finds calls of our API that cannot work: wrong names, wrong arguments.

It follows names, attributes, calls, loops and `with` as far as annotations tell what they are; of the rest it says
nothing.
"""

import ast
import importlib
import importlib.util
import inspect
import textwrap
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from workergroups import RayWorkerGroup

OURS = "workergroups"


class _Unknown:
    """Of what the reader knows nothing."""


UNKNOWN = _Unknown()


@dataclass(frozen=True)
class Instance:
    """An object of a class; `of` are the classes that it holds, if it holds others."""

    type: type
    of: tuple[Any, ...] = ()


class Reader(ast.NodeVisitor):
    """Reads one program."""

    def __init__(self) -> None:
        self.troubles: list[str] = []
        self._names: dict[str, Any] = {}

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            module = self._module(alias.name, node)
            self._names[alias.asname or alias.name.partition(".")[0]] = (
                module if alias.asname or "." not in alias.name else UNKNOWN
            )

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = self._module(node.module or "", node)
        for alias in node.names:
            self._names[alias.asname or alias.name] = self._member(module, alias.name, node)

    def visit_Assign(self, node: ast.Assign) -> None:
        value = self.value(node.value)
        for target in node.targets:
            self._assign(target, value)

    def visit_With(self, node: ast.With) -> None:
        for item in node.items:
            value = self.value(item.context_expr)
            if item.optional_vars is not None:
                self._assign(item.optional_vars, self._entered(value))
        for statement in node.body:
            self.visit(statement)

    def visit_For(self, node: ast.For) -> None:
        self._assign(node.target, _item(self.value(node.iter)))
        for statement in node.body:
            self.visit(statement)

    def visit_ListComp(self, node: ast.ListComp) -> None:
        for generator in node.generators:
            self._assign(generator.target, _item(self.value(generator.iter)))
            for condition in generator.ifs:
                self.value(condition)
        self.value(node.elt)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        caught = self.value(node.type) if node.type else UNKNOWN
        if node.name:
            self._names[node.name] = Instance(caught) if isinstance(caught, type) else UNKNOWN
        for statement in node.body:
            self.visit(statement)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.value(node)

    def visit_Call(self, node: ast.Call) -> None:
        self.value(node)

    def value(self, node: ast.expr) -> Any:
        """What an expression is, as far as that can be told: an object that was imported, an Instance, or UNKNOWN."""
        if isinstance(node, ast.Name):
            return self._names.get(node.id, UNKNOWN)
        if isinstance(node, ast.Attribute):
            return self._member(self.value(node.value), node.attr, node)
        if isinstance(node, ast.Call):
            return self._called(node)
        if isinstance(node, ast.Subscript):
            held = self.value(node.value)
            return held if isinstance(node.slice, ast.Slice) else _item(held)
        self.generic_visit(node)
        return UNKNOWN

    def _called(self, node: ast.Call) -> Any:
        for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
            self.value(argument)
        called = self.value(node.func)
        if not callable(called) or not _is_ours(called):
            return UNKNOWN
        self._check_arguments(called, node)
        return Instance(called) if isinstance(called, type) else _returned(called)

    def _check_arguments(self, called: Any, node: ast.Call) -> None:
        if any(isinstance(each, ast.Starred) for each in node.args) or any(each.arg is None for each in node.keywords):
            return
        try:
            inspect.signature(called).bind(*node.args, **{each.arg: each.value for each in node.keywords if each.arg})
        except TypeError as error:
            self._complain(node, f"{ast.unparse(node.func)}(): {error}")

    def _member(self, owner: Any, name: str, node: ast.AST) -> Any:
        if isinstance(owner, Instance):
            return self._member_of_instance(owner.type, name, node)
        if isinstance(owner, _Unknown) or not (inspect.ismodule(owner) or isinstance(owner, type)):
            return UNKNOWN
        if not hasattr(owner, name):
            self._complain(node, f"{owner.__name__} has no {name}")
            return UNKNOWN
        return getattr(owner, name)

    def _member_of_instance(self, kind: type, name: str, node: ast.AST) -> Any:
        member = inspect.getattr_static(kind, name, None)
        if isinstance(member, property):
            return _returned(member.fget)
        if inspect.isfunction(member):
            return member.__get__(object())  # bound, so that `self` is no argument
        hints = _hints(kind)
        if name in hints:
            return _described(hints[name])
        if member is None and name not in _set_by_methods(kind) and kind is not RayWorkerGroup and _is_ours(kind):
            # A RayWorkerGroup has the methods of its ranks' class.
            self._complain(node, f"{kind.__name__} has no {name}")
        return UNKNOWN

    def _entered(self, manager: Any) -> Any:
        if isinstance(manager, Instance) and _is_ours(manager.type):
            entered = _returned(inspect.getattr_static(manager.type, "__enter__", None))
            return manager if isinstance(entered, _Unknown) else entered
        return UNKNOWN

    def _assign(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            self._names[target.id] = value

    def _module(self, name: str, node: ast.AST) -> Any:
        try:
            if name.partition(".")[0] == OURS:
                return importlib.import_module(name)
            if importlib.util.find_spec(name) is None:
                self._complain(node, f"there is no module {name}")
        except ImportError as error:
            self._complain(node, str(error))
        return UNKNOWN

    def _complain(self, node: ast.AST, what: str) -> None:
        self.troubles.append(f"line {getattr(node, 'lineno', 0)}: {what}")


def troubles(program: str) -> list[str]:
    """What is wrong with a program; it is not run."""
    reader = Reader()
    reader.visit(ast.parse(program))
    return reader.troubles


def _is_ours(what: Any) -> bool:
    return str(getattr(what, "__module__", "")).startswith(OURS)


def _hints(what: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(what)
    except (NameError, TypeError):  # what is imported for type checkers only
        return dict.fromkeys(getattr(what, "__annotations__", ()), UNKNOWN)


def _returned(function: Any) -> Any:
    return _described(_hints(function).get("return", UNKNOWN)) if callable(function) else UNKNOWN


def _described(hint: Any) -> Any:
    """What an annotation tells of a value."""
    if isinstance(hint, type) and not typing.get_args(hint):
        return Instance(hint)
    arguments = [each for each in typing.get_args(hint) if each is not type(None)]
    origin = typing.get_origin(hint)
    if isinstance(origin, type) and arguments:
        return Instance(origin, tuple(arguments))
    return _described(arguments[0]) if len(arguments) == 1 else UNKNOWN


def _item(holder: Any) -> Any:
    """What a loop over it yields."""
    if isinstance(holder, Instance) and holder.of:
        return _described(holder.of[0])
    return UNKNOWN


def _set_by_methods(kind: type) -> Iterator[str]:
    """Attributes that methods set."""
    for base in kind.__mro__:
        if _is_ours(base) and inspect.isfunction(vars(base).get("__init__")):
            for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(base)))):
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                    yield node.attr
