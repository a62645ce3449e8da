"""Models in a GGUF file on this machine: one child process holds the model, and is replaced when it ends."""

from __future__ import annotations

import importlib.util
import os
import sys
import threading
from pathlib import Path
from typing import Any

from fsr.errors import HarnessError, MissingToolError
from fsr.llm.exchange import Answer, ModelFailure, Prompt
from fsr.llm.grammar import grammar_of, object_of
from fsr.llm.ledger import estimated_tokens
from fsr.llm.named import ModelSpec
from fsr.sandbox.child import Child, ChildDied, ChildTimedOut

LOAD_S = 300.0
DEATHS = 5  # in a row, without an answer between them: then the model is given up
INSTALL = "pip install llama-cpp-python (it is compiled on installing, some minutes)"


def installed() -> bool:
    """Whether llama-cpp-python is there."""
    return importlib.util.find_spec("llama_cpp") is not None


class Local:
    """One local model. ``module``: what its process runs."""

    def __init__(self, spec: ModelSpec, *, module: str = "fsr.llm.local_child") -> None:
        if module == "fsr.llm.local_child" and not installed():
            raise MissingToolError(
                "the package llama-cpp-python is not installed", expected="it, for --llm local:PATH", where="--llm",
                fix=INSTALL,
            )  # fmt: skip
        self.spec, self.name, self._module = spec, spec.name, module
        self._lock, self._deaths, self._closed = threading.Lock(), 0, False
        self._child: Child | None = None

    @property
    def pid(self) -> int | None:
        """Of the process that holds the model; None before the first question."""
        child = self._child
        return None if child is None else child.pid

    @property
    def cpu_s(self) -> float:
        """CPU time that the process has used; 0 before the first question."""
        child = self._child
        return 0.0 if child is None else child.cpu_s

    def ask(self, prompt: Prompt, cancelled: threading.Event) -> Answer:
        """The answer. Raises ModelFailure; a process that died is replaced for the next question."""
        with self._lock:
            if cancelled.is_set() or self._closed:
                raise ModelFailure("cancelled", "the run is over")
            try:
                said = self._said(prompt)
            except ChildDied as death:
                raise self._lost("died", f"its process ended with {death.code}") from None
            except ChildTimedOut:
                raise self._lost("time-out", f"no answer in {self.spec.timeout_s:g} s") from None
            except HarnessError as refusal:  # an exception inside: what was asked does not fit, say
                raise ModelFailure("refused", refusal.what, final=self._child is None) from None
            self._deaths = 0
        text, seconds = object_of(prompt.fields, said["text"]), round(said["seconds"], 3)
        return Answer(text, said["tokens_in"], said["tokens_out"], seconds, said["stop"], True, 0.0)

    def _said(self, prompt: Prompt) -> Any:
        child = self._running()
        room = self.spec.context - estimated_tokens(prompt.system + prompt.user) * 3 // 4 - 32
        asked = {
            "op": "answer", "system": prompt.system, "user": prompt.user, "seed": prompt.sample,
            "most_tokens": max(16, min(prompt.most_tokens, room)),
            "grammar": grammar_of(prompt.fields) if prompt.fields else "",
        }  # fmt: skip
        return child.ask(asked, timeout_s=self.spec.timeout_s)

    def _running(self) -> Child:
        if self._child is not None:
            return self._child
        path = os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, sys.path)])
        command = [sys.executable, "-m", self._module]
        child = Child(command, f"the process of {self.name}", environment={"PYTHONPATH": path})
        self._child = child
        load = {
            "op": "load", "path": self.spec.path, "context": self.spec.context, "threads": self.spec.threads,
            "gpu_layers": self.spec.gpu_layers,
        }  # fmt: skip
        try:
            child.ask(load, timeout_s=LOAD_S)
        except HarnessError:
            self._child = None
            child.kill()
            raise
        return child

    def _lost(self, kind: str, why: str) -> ModelFailure:
        if self._closed:
            return ModelFailure("cancelled", "the run is over")
        self._child = None
        self._deaths += 1
        return ModelFailure(kind, why, final=self._deaths >= DEATHS)

    def close(self) -> None:
        """End the process at once, whatever it is doing."""
        self._closed = True
        child = self._child
        if child is not None:
            child.kill()
