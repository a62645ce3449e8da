"""The dotted words of an opcode, taken one after the other until none is left."""

from __future__ import annotations

from fsr.backends.host.ptx.refusal import RefusedError
from fsr.backends.host.ptx.registers import CXX
from fsr.backends.host.ptx.template import Instruction


class Words:
    """What stands behind an opcode's first word; the order of qualifiers says nothing."""

    def __init__(self, instruction: Instruction) -> None:
        self._opcode, self._left = instruction.opcode, list(instruction.words[1:])

    def take(self, *known: str) -> str:
        """The first of these words that is there, which is done with then; empty without one."""
        for word in self._left:
            if word in known:
                self._left.remove(word)
                return word
        return ""

    def all(self, *known: str) -> tuple[str, ...]:
        """All of these words that are there, in their order."""
        found = tuple(word for word in self._left if word in known)
        self._left = [word for word in self._left if word not in known]
        return found

    def one(self, *known: str) -> str:
        """As take, where one of them must be there."""
        word = self.take(*known)
        if not word:
            raise RefusedError(self._opcode, f"none of .{', .'.join(known)} is in it")
        return word

    def types(self) -> tuple[str, ...]:
        """All types, in their order."""
        return self.all(*CXX)

    def type(self) -> str:
        """The one type."""
        found = self.types()
        if len(found) != 1:
            raise RefusedError(self._opcode, "it names no type that the host device knows")
        return found[0]

    def hints(self) -> None:
        """Words about caches, which mean nothing on a CPU."""
        self._left = [word for word in self._left if not word.startswith(("L1::", "L2::"))]

    def end(self) -> None:
        """Raises RefusedError where a word is left."""
        if self._left:
            raise RefusedError(self._opcode, f"the host device does not know .{self._left[0]} of it")
