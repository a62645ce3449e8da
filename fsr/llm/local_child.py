"""The process that holds a local model: loads a GGUF file with llama-cpp-python, answers one question at a time.

``python -m fsr.llm.local_child FD``. It has no other duty, so that a segmentation fault, a hang or running out of
memory costs this process alone; where memory runs out, the kernel is asked to end it before anybody else. It yields
the processor to evaluations: on few cores a run is as fast beside it as without it.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from fsr.sandbox.channel import receive, send
from fsr.sandbox.parent import die_with_parent

TEMPERATURE = 0.8
BATCH = 512
NICE = 10


class Model:
    """A loaded model."""

    def __init__(self, path: str, context: int, threads: int, gpu_layers: int) -> None:
        from llama_cpp import Llama

        self._llama = Llama(
            model_path=path, n_ctx=context, n_threads=threads, n_threads_batch=threads, n_batch=BATCH,
            n_gpu_layers=gpu_layers, verbose=False,
        )  # fmt: skip
        self._chats = "tokenizer.chat_template" in (self._llama.metadata or {})

    def answer(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Text, tokens and why it ended. Raises whatever llama-cpp-python raises."""
        from llama_cpp import LlamaGrammar

        grammar = LlamaGrammar.from_string(asked["grammar"], verbose=False) if asked["grammar"] else None
        common: dict[str, Any] = {
            "max_tokens": asked["most_tokens"], "temperature": TEMPERATURE, "seed": asked["seed"], "grammar": grammar,
        }  # fmt: skip
        started = time.monotonic()
        if self._chats:
            messages = [
                {"role": "system", "content": asked["system"]}, {"role": "user", "content": asked["user"]},
            ]  # fmt: skip
            done: Any = self._llama.create_chat_completion(messages=messages, **common)
            text = done["choices"][0]["message"]["content"]
        else:
            done = self._llama.create_completion(prompt=f"{asked['system']}\n\n{asked['user']}\n\n", **common)
            text = done["choices"][0]["text"]
        usage = done["usage"]
        return {
            "text": text or "", "tokens_in": usage["prompt_tokens"], "tokens_out": usage["completion_tokens"],
            "stop": "length" if done["choices"][0]["finish_reason"] == "length" else "stop",
            "seconds": time.monotonic() - started,
        }  # fmt: skip


def die_before_others() -> None:
    """End first where memory runs out (Linux)."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def serve(connection: socket.socket) -> None:
    """Answer until the other side closes."""
    model: Model | None = None
    send(connection, {"ready": True})
    while True:
        try:
            asked, _ = receive(connection)
        except (EOFError, OSError):
            return
        try:
            if asked["op"] == "load":
                model = Model(asked["path"], asked["context"], asked["threads"], asked["gpu_layers"])
                answer: dict[str, Any] = {"loaded": True}
            else:
                assert model is not None
                answer = model.answer(asked)
        except Exception as fault:
            answer = {"error": f"{type(fault).__name__}: {fault}"[:500]}
        send(connection, answer)


def main() -> None:
    """Serve on an inherited socket; what llama.cpp prints is nobody's business."""
    die_with_parent()
    die_before_others()
    os.nice(NICE)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve(socket.socket(fileno=int(sys.argv[1])))


if __name__ == "__main__":
    main()
