"""rows-abreast: a block takes several neighbouring rows, a few threads each, and neighbouring threads take
neighbouring rows.

Where the elements of neighbouring rows lie side by side (columns of a matrix in row-major order, weights packed along
their inputs), a block a row reads one element of each sector, and a thread a row leaves most of the GPU idle. Columns
of threads do neither: a warp reads whole sectors, and the threads of a row, which stand a few lanes or warps apart,
fold what they have in shared memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fsr.analysis.operators import OPERATORS
from fsr.records import Candidate, ScalarArgument
from fsr.source.form import Binary, Call, Declare, Expr, If, Member, Name, Param, Return, Stmt, number
from fsr.source.rewrite import replace_kernel
from fsr.transform.collectives import missing_helpers
from fsr.transform.launch.contiguous import share_along
from fsr.transform.plan import with_launch
from fsr.transform.protocol import Move, Subject
from fsr.transform.rows.action import AIMS, all_short, fits, regridded, rows_of
from fsr.transform.rows.row_kernel import RowKernel, fresh
from fsr.transform.rows.share import Group, helpers_of, shared_out
from fsr.transform.rows.units import crossing, flatten

WAYS = ((8, 32), (16, 16), (32, 32), (8, 64), (32, 8))  # rows, and threads a row
GAIN = 1.5  # neighbouring blocks find much of a sector in the L2 cache anyway
_SHARE = 0.3  # of the elements that are read: the others may be those of a vector that all rows share


@dataclass(frozen=True, slots=True)
class Abreast(Group):
    """``rows``: how many stand side by side; ``size`` threads each, ``rows`` threads apart."""

    rows: int = 1

    def helper(self, operator: str) -> str:
        """As Group's."""
        return f"fsr_abreast_{operator}"

    def fold(self, operator: str, *values: Expr) -> Expr:
        """As Group's."""
        return Call(Name(self.helper(operator)), values, (str(self.rows), str(self.threads)))


@dataclass(frozen=True, slots=True)
class RowsAbreast:
    """The action."""

    name: str = "rows-abreast"
    aims_at: frozenset[str] = AIMS

    def moves(self, subject: Subject) -> Iterator[Move]:
        """Rows whose neighbours' elements lie side by side, and whose folds all threads come to."""
        for kernel in () if subject.keep_launch else subject.kernels.values():
            rows = rows_of(subject, kernel)
            if (
                rows is None
                or not fits(rows, subject)
                or all_short(rows)
                or not _meets(rows)
                or not _side_by_side(rows)
            ):
                continue
            for many, lanes in WAYS:
                yield Move(self.name, kernel.name, (("rows", many), ("lanes", lanes)), GAIN)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with columns of threads."""
        kernel = subject.kernels[move.region]
        rows = rows_of(subject, kernel)
        assert rows is not None
        many, lanes = int(move.param("rows")), int(move.param("lanes"))
        group = Abreast(lanes, many * lanes, fresh("lane", rows.target.kernel), many)
        body = shared_out(rows.units, group, frozenset(), dict(rows.scene.types), rows.before)
        count = fresh("rows_in_all", rows.target.kernel)
        target, candidate = rows.target, subject.candidate
        restrict = not target.aliasing
        params = tuple(replace(p, restrict=p.restrict or (restrict and p.is_pointer)) for p in target.kernel.params)
        thread, block, row = Member(Name("threadIdx"), "x"), Member(Name("blockIdx"), "x"), rows.row
        first: Expr = Binary("+", Binary("*", block, number(many)), Binary("%", thread, number(many)))
        whole: tuple[Stmt, ...] = (
            *rows.before, Declare("const int", group.lane, Binary("/", thread, number(many))), replace(row, init=first),
            If(Binary(">=", Name(row.name), Name(count)), (Return(),)), *body,
        )  # fmt: skip
        made = replace(target.kernel, body=whole, launch_bounds=(str(group.threads),),
                       params=(*params, Param("unsigned int", count)))  # fmt: skip
        helpers = missing_helpers(candidate.source, helpers_of(rows.units, group))
        shared_bytes = "0" if rows.lifted else target.launch.shared_bytes
        plan = with_launch(candidate.plan, target.position, lambda one: regridded(
            replace(one, args=(*one.args, ScalarArgument("uint32", rows.rows))),
            f"ceil_div({rows.rows}, {many})", group.threads, shared_bytes))  # fmt: skip
        source = replace_kernel(candidate.source, target.kernel, made, helpers)
        return replace(candidate, source=source, plan=plan, actions=(*candidate.actions, move.name))


def _meets(rows: RowKernel) -> bool:
    """Whether the threads of all rows that are there come to the same folds: none stands in a branch or a loop, and
    nothing is handed from thread to thread but by folds. A barrier does not wait for threads that left."""
    folding = [u for u in flatten(rows.units) if u.loop is not None and (u.loop.folds or u.loop.places)]
    if not folding or any(u.loop is not None and u.loop.places for u in folding):
        return False
    known = all(op in OPERATORS for u in folding if u.loop is not None for op in u.loop.folds.values())
    return known and all(any(u is one for one in rows.units) for u in folding) and not crossing(rows.units, rows.scene)


def _side_by_side(rows: RowKernel) -> bool:
    """Whether most of what is read lies side by side for neighbouring rows."""
    return share_along(rows.target, "blockIdx.x" if rows.lifted else "threadIdx.x") > _SHARE
