"""Faults in what decides: relations, guards, logic, choices."""

from __future__ import annotations

from collections.abc import Iterator

from fsr.mutation.ground import Edit, Function

_LOOSENED = {"<": "<=", ">": ">=", "<=": "<", ">=": ">"}
_REVERSED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
_EQUALITY = {"==": "!=", "!=": "=="}


def relations(function: Function) -> Iterator[Edit]:
    """A relation that is off by one, the wrong way round, negated or decided."""
    for index, token in enumerate(function.tokens):
        if not function.follows_operand(index) or _is_template(function, index):
            continue
        if token.text in _LOOSENED:
            yield Edit("relation-loosened", token.start, token.end, _LOOSENED[token.text])
            yield Edit("relation-reversed", token.start, token.end, _REVERSED[token.text])
        if token.text in _EQUALITY:
            yield Edit("equality-negated", token.start, token.end, _EQUALITY[token.text])
        if token.text in ("<", ">") and index + 1 < len(function.tokens):
            last = function.tokens[function.operand_end(index + 1)].end
            start = function.tokens[index + 1].start
            wrong = "- 1" if token.text == "<" else "+ 1"
            yield Edit("bound-short", start, last, f"{function.text(start, last)} {wrong}")


def guards(function: Function) -> Iterator[Edit]:
    """A condition that always holds, one that never does, and a loop that goes round once at most."""
    tokens = function.tokens
    for index, token in enumerate(tokens[:-1]):
        if token.text not in ("if", "while") or tokens[index + 1].text != "(":
            continue
        close = function.close(index + 1)
        if close is None:
            continue
        start, end = tokens[index + 1].end, tokens[close].start
        yield Edit("condition-false", start, end, "false")
        if token.text == "if":
            yield Edit("condition-true", start, end, "true")
            yield Edit("condition-negated", start, end, f"!({function.text(start, end)})")
        if token.text == "while" and close + 1 < len(tokens) and tokens[close + 1].text != ";":
            yield Edit("loop-once", token.start, token.end, "if")


def logic(function: Function) -> Iterator[Edit]:
    """Conjunctions and disjunctions swapped, or with one side lost; a negation lost; a choice that is none."""
    for index, token in enumerate(function.tokens):
        if token.text in ("&&", "||") and function.follows_operand(index):
            yield Edit("logic-swapped", token.start, token.end, "||" if token.text == "&&" else "&&")
            yield Edit("condition-right-only", token.start, token.end, ",")
            yield Edit("condition-left-only", token.start, token.end, "|| 0 &&")
        if token.text == "!" and not function.follows_operand(index):
            yield Edit("negation-dropped", token.start, token.end, "")
        if token.text == "?":
            yield Edit("choice-first", token.start, token.end, "|| true ?")
            yield Edit("choice-second", token.start, token.end, "&& false ?")


def branches(function: Function) -> Iterator[Edit]:
    """A way out or an alternative that is lost."""
    tokens = function.tokens
    for index, token in enumerate(tokens[:-1]):
        if token.text in ("break", "continue") and tokens[index + 1].text == ";":
            yield Edit(f"{token.text}-dropped", token.start, token.end, "")
        if token.text == "return" and tokens[index + 1].text == ";":
            yield Edit("return-dropped", token.start, token.end, "")
        if token.text == "else" and tokens[index + 1].text != "if":
            yield Edit("else-dropped", token.start, token.end, "else if (false)")


def _is_template(function: Function, index: int) -> bool:
    """Whether a < or > belongs to template arguments, as far as the tokens around it tell."""
    tokens, text = function.tokens, function.tokens[index].text
    before = tokens[index - 1].text
    if text == "<":
        after = tokens[index + 1].text if index + 1 < len(tokens) else ""
        kinds = ("float", "int", "double", "unsigned", "const", "char", "half", "__half", "uint4", "float4", "float2")
        if before.endswith("_cast") or after in kinds:
            return True
        close = next((i for i in range(index + 1, min(index + 8, len(tokens))) if tokens[i].text in (">", ";")), None)
        return (
            close is not None
            and tokens[close].text == ">"
            and close + 1 < len(tokens)
            and tokens[close + 1].text in ("(", "::")
            and all(t.kind in ("name", "number") or t.text in (",", "::", "*") for t in tokens[index + 1 : close])
        )
    after = tokens[index + 1].text if text == ">" and index + 1 < len(tokens) else ""
    return text == ">" and (before == "*" or (after == "(" and _opened(function, index)))


def _opened(function: Function, index: int) -> bool:
    """Whether a template list that a name began closes here."""
    tokens = function.tokens
    for at in range(index - 1, max(index - 8, 0), -1):
        if tokens[at].text == "<":
            return tokens[at - 1].kind == "name" and _is_template(function, at)
        if tokens[at].kind not in ("name", "number") and tokens[at].text not in (",", "::", "*"):
            return False
    return False
