"""Whether runs with other data, of which branches on data want so many at least, can be made in the time that is left:
it is said after a few of them, not when the time is used up."""

from __future__ import annotations

from fsr.lifting.allowance import Allowance
from fsr.lifting.refused import Hopeless

_FEW = 2  # runs after which their pace is known
_SURE = 1.5  # times what is left: what lifts in time is never stopped for a slow moment
_OTHERS = 0.5  # of the work at other sizes, at some of which nothing may hang on data


class Pace:
    """``share``: the work at this size and those after it, by that at this one, at least 1."""

    def __init__(self, allowance: Allowance, share: float) -> None:
        self._allowance, self._began_s = allowance, allowance.left_s
        self._share, self._first = 1.0 + _OTHERS * (max(share, 1.0) - 1.0), -1

    def require(self, run: int, least: int) -> None:
        """Before the run of that number is made, of so many at least. Raises Hopeless."""
        if self._first < 0:
            self._first, self._began_s = run, self._allowance.left_s
        made, left_s = run - self._first, self._allowance.left_s
        if made < _FEW or run >= least:
            return
        each_s = (self._began_s - left_s) / made
        if each_s * (least - run) * self._share > _SURE * left_s:
            raise Hopeless("watching every branch on data would take too long")
