"""``generate``: a first kernel from a contract and a reference, written by a model and judged as an original is.

Each suggestion goes through the guard, then through all that a user's own kernel must pass before it is refined: every
search-time case against the reference, repeated, recorded for races and bounds; the fastest right one once more, on
cases that were drawn anew. What is written is a kernel file like any other, with its contract.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from fsr.backends.select import backend_named
from fsr.contract.described import Described, headers_of, read_described
from fsr.contract.show import with_block
from fsr.errors import BaselineError, FsrError, UsageError
from fsr.evaluation.spec import BaselineReport, SessionSpec
from fsr.guard.check import guard
from fsr.hardware.gpus import closest_target
from fsr.identity import digest, to_json
from fsr.llm.book import ANSWERS, Book
from fsr.llm.code import normal_form
from fsr.llm.exchange import ModelFailure
from fsr.llm.ledger import Bill, Ledger
from fsr.llm.named import ModelSpec
from fsr.llm.proficiency import LEVELS, Mark, proficiency
from fsr.llm.roles import author
from fsr.llm.unusable import Unusable
from fsr.records import Candidate, Json
from fsr.runs.baseline import qualify
from fsr.runs.fleet import Fleet, open_fleet
from fsr.runs.kernel import Kernel
from fsr.runs.models import models_named, provider_of, require_consent
from fsr.runs.options import RefineOptions
from fsr.settings import Settings
from fsr.source.file import KernelFile

FAILURES = 3  # of the model in a row: then no more is asked
Tell = Callable[["Suggested"], None]


@dataclass(frozen=True, slots=True)
class Suggested:
    """One suggestion. mark: on the scale. why: it is not right, in words; of another programming model, its name."""

    number: int
    mark: Mark
    why: str = ""
    time_ns: float | None = None
    candidate: Candidate | None = None

    def to_json(self) -> dict[str, Json]:
        """As ``fsr generate --json`` tells it."""
        return {"number": self.number, "mark": self.mark.value, "why": self.why, "time_ns": self.time_ns}


@dataclass(frozen=True, slots=True)
class Generated:
    """What came of it. refused: answers that held no suggestion, by kind. score: on the scale of proficiency, 0 to 1.
    output: the file with the fastest right kernel, None without one."""

    entry: str
    model: str
    suggestions: tuple[Suggested, ...]
    refused: Mapping[str, int]
    score: float
    basis: str
    device: Json
    bill: Bill
    seconds: float
    output: Path | None = None
    best_ns: float | None = None

    def to_json(self) -> dict[str, Json]:
        """The object that ``fsr generate --json`` prints."""
        bill = self.bill
        return {
            "status": "generated" if self.output is not None else "failed", "entry": self.entry, "model": self.model,
            "score": self.score, "level": LEVELS[self.score], "suggestions": [s.to_json() for s in self.suggestions],
            "refused": dict(self.refused), "basis": self.basis, "device": self.device, "best_ns": self.best_ns,
            "output": None if self.output is None else str(self.output), "questions": bill.questions,
            "tokens_in": bill.tokens_in, "tokens_out": bill.tokens_out,
            "dollars": None if bill.unpriced else round(bill.dollars, 6), "seconds": round(self.seconds, 2),
        }  # fmt: skip


def model_of(options: RefineOptions, settings: Settings) -> ModelSpec:
    """The one model that writes. Raises UsageError, saying what is needed, where there is none that can."""
    specs = models_named(options.llm or settings.llm, options.max_cost, settings)
    if not specs:
        raise UsageError(
            "generate needs a language model, and none is configured", where="--llm",
            expected="--llm URL#MODEL (an OpenAI-compatible end point), --llm local:FILE.gguf, or llm = [...] in "
            f"{settings.home}/config.toml",
            fix="with Ollama on this machine: fsr generate SPEC.toml --llm http://localhost:11434/v1#qwen3",
        )  # fmt: skip
    writers = [spec for spec in specs if "coder" in spec.roles]
    if not writers:
        raise UsageError(
            f"the model {specs[0].name} is too small to write kernels: it only chooses among moves",
            expected="one with the role 'coder'", where="--llm", fix="name a larger one (docs/models.md)",
        )  # fmt: skip
    require_consent(writers[:1], settings, given=options.yes)
    return writers[0]


def generate(
    spec: Path, options: RefineOptions, settings: Settings, count: int, tell: Tell = lambda _: None
) -> Generated:
    """Ask for ``count`` suggestions, judge each, and write the fastest right one to ``options.output`` (beside the
    description, as a .cu, when None). ``options.kernel`` is not looked at. Answers are kept: the same question, which
    the seed is part of, is asked once. Raises FsrError."""
    started = time.monotonic()
    told, model = read_described(spec), model_of(options, settings)
    output = options.output or spec.with_suffix(".cu")
    if output.exists():
        raise UsageError(f"{output} is there already", expected="a new file", where="-o", fix="name another: -o FILE")
    asking = _Asking(told, model, settings, options)
    with open_fleet(options, 1, single=True) as fleet:
        judge = _Judge(told, spec.parent.absolute(), fleet, options)
        found = []
        for number, answer in asking.suggestions(count, fleet.target):
            found.append(judge.suggested(number, answer))
            tell(found[-1])
        best, found = judge.confirmed(found)
        report = judge.report
    if best is not None:
        _write(output, judge.file_of(best))
    return Generated(
        told.contract.entry, model.name, tuple(found), asking.refused, proficiency([s.mark for s in found]),
        backend_named(fleet.device).basis.value, None if report is None else to_json(report.device),
        asking.book.ledger.bill(model.name), time.monotonic() - started, output if best is not None else None,
        None if best is None else best.time_ns,
    )  # fmt: skip


class _Asking:
    """The questions, by the book."""

    def __init__(self, told: Described, model: ModelSpec, settings: Settings, options: RefineOptions) -> None:
        self.told, self.model, self.refused = told, model, dict[str, int]()
        self._first = options.seed * 1000
        self._provider = provider_of(model, settings)
        name = f"{told.contract.entry}-{digest([told.signature, told.reference, told.description])[2:10]}"
        self.book = Book(Path(settings.home, "generated", name, ANSWERS), Ledger(options.max_cost))

    def suggestions(self, count: int, target: str) -> Iterator[tuple[int, Candidate | Unusable]]:
        """(number, kernel or why it is none) of every suggestion: answers in another programming model and wrong ones
        count, those that hold no code and repetitions do not. Raises UsageError when the model does not answer."""
        seen, failures = set[str](), 0
        try:
            for number in range(count):
                prompt = author.prompt(self.told, closest_target(target), self.model.context, self._first + number)
                try:
                    text = self.book.ask(self._provider, self.model, prompt, threading.Event()).text
                except ModelFailure as failure:
                    failures += 1
                    if failure.final or (failures >= FAILURES and not seen):
                        if not seen:
                            raise UsageError(
                                f"{self.model.name} did not answer: {failure}", where="--llm", fix="fsr doctor asks it"
                            ) from None
                        return
                    continue
                found = _read(text, self.told)
                form = found.kind if isinstance(found, Unusable) else normal_form(found)
                if isinstance(found, Unusable) and found.kind not in ("other language", "host code", "bad plan"):
                    self._refuse(found.kind)
                elif not isinstance(found, Unusable) and form in seen:
                    self._refuse("duplicate")
                else:
                    seen.add(form)
                    yield number + 1, found
        finally:
            self._provider.close()

    def _refuse(self, kind: str) -> None:
        self.refused[kind] = self.refused.get(kind, 0) + 1


def _read(text: str, told: Described) -> Candidate | Unusable:
    try:
        return author.read(text, told)
    except Unusable as fault:
        return fault


class _Judge:
    """Judges kernels as originals. report: of the last that was right."""

    def __init__(self, told: Described, folder: Path, fleet: Fleet, options: RefineOptions) -> None:
        self._told, self._folder, self._fleet, self._options = told, folder, fleet, options
        self.report: BaselineReport | None = None

    def suggested(self, number: int, answer: Candidate | Unusable) -> Suggested:
        """The mark of an answer."""
        if isinstance(answer, Unusable):
            other = answer.kind == "other language"
            why = answer.detail if other else str(answer)
            return Suggested(number, Mark.OTHER_MODEL if other else Mark.WRONG, why)
        fault = guard(answer, Candidate(self._told.stub, answer.plan), self._fleet.target)
        if fault is not None:
            return Suggested(number, Mark.WRONG, f"refused: {fault.detail}")
        try:
            report = self._qualified(answer, self._options.seed)
        except FsrError as fault_of_it:
            if not isinstance(fault_of_it, BaselineError | UsageError):
                raise
            return Suggested(number, Mark.WRONG, fault_of_it.what.split("\n")[0], candidate=answer)
        self.report = report
        timing = report.outcome.timing
        return Suggested(number, Mark.RIGHT, "", None if timing is None else timing.median_ns, answer)

    def confirmed(self, found: list[Suggested]) -> tuple[Suggested | None, list[Suggested]]:
        """The fastest that is right on other cases too, and all, those that are not marked as wrong."""
        for one in sorted((s for s in found if s.mark is Mark.RIGHT), key=lambda s: s.time_ns or 0.0):
            assert one.candidate is not None
            try:
                self.report = self._qualified(one.candidate, self._options.seed + 1)
                return one, found
            except BaselineError as fault:
                wrong = replace(one, mark=Mark.WRONG, why=f"on other cases: {fault.what.splitlines()[0]}")
                found = [wrong if s is one else s for s in found]
        return None, found

    def file_of(self, one: Suggested) -> str:
        """The kernel file of a suggestion."""
        assert one.candidate is not None
        return self._kernel(one.candidate).file.text

    def _qualified(self, candidate: Candidate, seed: int) -> BaselineReport:
        kernel = self._kernel(candidate)
        spec: SessionSpec = replace(self._fleet.spec(kernel, self._options), seed=seed, untrusted=True)
        return qualify(self._fleet.workers, spec, kernel, lambda: None)

    def _kernel(self, candidate: Candidate) -> Kernel:
        path = self._folder / f"{self._told.contract.entry}.cu"
        headers = headers_of(self._told.contract).splitlines(keepends=True)
        source = "".join(line for line in headers if line.strip() not in candidate.source) + candidate.source
        named = [launch.entry for launch in candidate.plan.launches]
        entry = self._told.contract.entry if self._told.contract.entry in named else named[0]
        contract = replace(self._told.contract, plan=candidate.plan, entry=entry)
        file = KernelFile.from_text(with_block(source, contract), path)
        unit = file.cut(entry, *(name for name in dict.fromkeys(named) if name != entry))
        return Kernel(file, contract, unit, Candidate(unit.text, candidate.plan))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(KernelFile.encode(text))
