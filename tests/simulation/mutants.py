"""Mutants: small changes of a program, one at a time, that good tests notice."""

import ast
from dataclasses import dataclass
from itertools import islice

SWAPS = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
}


@dataclass(frozen=True)
class Mutant:
    """One change of a program."""

    line: int
    what: str
    """The change in words."""
    original: str
    number: int
    """Its index among all changes."""

    def source(self):
        """The changed program; computed lazily, since only a sample of thousands is tried."""
        tree = ast.parse(self.original)
        _, _, change = next(islice(_changes(tree), self.number, None))
        change()
        return ast.unparse(ast.fix_missing_locations(tree))


def mutants(source):
    """All mutants of a program, in order. Types, texts and docstrings are not changed."""
    changes = enumerate(_changes(ast.parse(source)))
    return [Mutant(node.lineno, what, source, number) for number, (node, what, _) in changes]


def _changes(tree):
    """(node, description, a function that changes the tree), always in the same order."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            for node in _inside(function):
                yield from _of(node)


def _inside(function):
    """The code that runs when it is called, without annotations."""
    for statement in function.body:
        for node in ast.walk(statement):
            if not isinstance(node, ast.FunctionDef):
                yield node


def _of(node):
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in SWAPS:
            yield node, f"compares otherwise: {ast.unparse(node)}", lambda: _swap(node.ops, 0)
        case ast.BoolOp():
            yield node, f"and/or: {ast.unparse(node)}", lambda: setattr(node, "op", SWAPS[type(node.op)]())
        case ast.BinOp(op=op) if type(op) in SWAPS and not _is_text(node):
            yield node, f"plus/minus: {ast.unparse(node)}", lambda: setattr(node, "op", SWAPS[type(op)]())
        case ast.UnaryOp(op=ast.Not()):
            yield node, f"without 'not': {ast.unparse(node)}", lambda: _become(node, node.operand)
        case ast.Constant(value=bool() as value):
            yield node, f"{value} the other way round", lambda: setattr(node, "value", not value)
        case ast.Constant(value=int() as value):
            yield node, f"{value} is {value + 1}", lambda: setattr(node, "value", value + 1)
        case ast.If() | ast.IfExp():
            for answer in (True, False):
                description = f"if {ast.unparse(node.test)}: always {answer}"
                yield node, description, lambda answer=answer: setattr(node, "test", ast.Constant(answer))
        case ast.Expr(value=ast.Yield() | ast.YieldFrom() | ast.Call()):
            yield node, f"without: {ast.unparse(node)}", lambda: setattr(node, "value", ast.Constant(None))
        case ast.Call(func=ast.Name(id="replace"), keywords=[*keywords]):
            for index, keyword in enumerate(keywords):
                description = f"keeps {keyword.arg}: {ast.unparse(node)}"
                yield node, description, lambda index=index: node.keywords.pop(index)


def _swap(operators, index):
    operators[index] = SWAPS[type(operators[index])]()


def _become(node, other):
    node.__class__ = other.__class__
    node.__dict__ = other.__dict__


def _is_text(node):
    return any(isinstance(n, ast.JoinedStr | ast.Tuple | ast.List) for n in (node.left, node.right))
