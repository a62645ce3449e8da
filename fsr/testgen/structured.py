"""Buffers of structures, apart and together: drawn, moved and compared member by member, and run as what they are.

Values are made and judged by :meth:`fsr.contract.model.Contract.apart`, in which each member is a buffer of its own.
Whatever runs a kernel has the structures as the compiler lays them out, as words; bytes between members are 0, and
nobody compares them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fsr.contract.model import Contract, Layout
from fsr.hardware.dtypes import numpy_dtype
from fsr.records import Role

Array = np.ndarray[Any, Any]


def layouts_of(contract: Contract) -> dict[str, Layout]:
    """Those of a contract's buffers of structures, by argument."""
    return {a.name: a.layout for a in contract.args if a.layout is not None}


def are_written(contract: Contract) -> bool:
    """Whether some output is structures, of which nobody can tell words apart that are right and that are not."""
    return any(a.role is not Role.IN for a in contract.structured())


def apart(arrays: Mapping[str, Array], layouts: Mapping[str, Layout]) -> dict[str, Array]:
    """The arrays with those of each member, ``pairs.weight``, in the place of structures."""
    found = dict[str, Array]()
    for name, array in arrays.items():
        layout = layouts.get(name)
        if layout is None:
            found[name] = array
            continue
        records = np.ascontiguousarray(array).reshape(-1).view(_record(layout)).reshape(array.shape[:-1])
        found |= {f"{name}.{f.path}": np.ascontiguousarray(records[f.path]) for f in layout.fields}
    return found


def together(arrays: Mapping[str, Array], layouts: Mapping[str, Layout]) -> dict[str, Array]:
    """The arrays with structures, as words along the last extent, in the place of their members'; the first member says
    where. Of members that are not there nothing is made."""
    found = dict[str, Array]()
    owners = {f"{name}.{f.path}": name for name, layout in layouts.items() for f in layout.fields}
    for key, array in arrays.items():
        name = owners.get(key)
        if name is None:
            found[key] = array
        elif name not in found:
            layout, word = layouts[name], np.dtype(f"u{layouts[name].word}")
            records = np.zeros(array.shape, _record(layout))
            for f in layout.fields:
                records[f.path] = arrays[f"{name}.{f.path}"]
            found[name] = records.reshape(-1).view(word).reshape(*array.shape, layout.bytes // layout.word)
    return found


def _record(layout: Layout) -> np.dtype[Any]:
    return np.dtype(
        {
            "names": [f.path for f in layout.fields],
            "formats": [numpy_dtype(f.dtype) for f in layout.fields],
            "offsets": [f.offset for f in layout.fields],
            "itemsize": layout.bytes,
        }
    )
