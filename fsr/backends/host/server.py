"""The child process: loads images, maps buffers, runs launches. Nothing here is trusted once a candidate ran.

Requests are JSON objects with ``op``: load, unload, map, unmap, run, record, watch, trace. The parent decides
everything; the child checks nothing that only a broken parent could get wrong.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import resource
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fsr.backends.host.abi import BasicBlock, Entry, FaultRecord, FoundFault, Order, RecordSummary, Site
from fsr.sandbox.channel import receive, send
from fsr.sandbox.parent import die_with_parent

PAGE = 4096
STACK_BYTES, STACK_COUNT = 256 * 1024, 16384
GUARDED_STACKS = 1024  # the runtime guards the others when it needs them
GUARD_BYTES = 1 << 20  # unmapped on each side of a buffer
ADDRESS_LIMIT = 1 << 38
_PROT_NONE, _PROT_RW, _MAP_SHARED, _MAP_PRIVATE, _MAP_FIXED = 0, 3, 1, 2, 16
_MAP_ANONYMOUS, _MAP_NORESERVE = 0x20, 0x4000
_PR_SET_NO_NEW_PRIVS = 38
_FAILED = ctypes.c_void_p(-1).value

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


def _map(address: int | None, size: int, protection: int, flags: int, file: int = -1, offset: int = 0) -> int:
    result = libc.mmap(address, size, protection, flags, file, offset)
    if result is None or result == _FAILED:
        code = ctypes.get_errno()
        raise OSError(code, f"cannot map {size} bytes: {os.strerror(code)}")
    return int(result)


class Memory:
    """The buffers of one prepared plan, each in pages of its own between unmapped ones."""

    def __init__(self, file: int, regions: list[list[int]]) -> None:
        """``regions``: offset and length in the file, both multiples of a page."""
        self.size = sum(length for _, length in regions) + GUARD_BYTES * (len(regions) + 1)
        self.base = _map(None, self.size, _PROT_NONE, _MAP_PRIVATE | _MAP_ANONYMOUS | _MAP_NORESERVE)
        self.addresses, at = [], self.base + GUARD_BYTES
        for offset, length in regions:
            self.addresses.append(_map(at, length, _PROT_RW, _MAP_SHARED | _MAP_FIXED, file, offset))
            at += length + GUARD_BYTES

    def close(self) -> None:
        """Unmap everything."""
        libc.munmap(self.base, self.size)


class Server:
    """State of the child: the fault record it shares with the parent, stacks, images, memories."""

    def __init__(self, connection: socket.socket, fault_file: int) -> None:
        self.connection = connection
        self.fault_at = _map(None, PAGE, _PROT_RW, _MAP_SHARED, fault_file)
        self.fault = FaultRecord.from_address(self.fault_at)
        self.stack_stride = STACK_BYTES + PAGE
        self.stacks = self._stacks()
        self.images: dict[int, ctypes.CDLL] = {}
        self.held: dict[int, int] = {}
        self.memories: dict[int, Memory] = {}

    def _stacks(self) -> int:
        base = _map(None, self.stack_stride * STACK_COUNT, _PROT_RW, _MAP_PRIVATE | _MAP_ANONYMOUS | _MAP_NORESERVE)
        for index in range(GUARDED_STACKS):
            libc.mprotect(base + index * self.stack_stride, PAGE, _PROT_NONE)
        return base

    def serve(self) -> None:
        """Answer requests until the parent closes the connection."""
        while True:
            try:
                request, files = receive(self.connection)
            except (EOFError, OSError):
                return
            try:
                answer = getattr(self, f"do_{request['op']}")(request, files)
            except (OSError, MemoryError, ValueError) as error:
                answer = {"error": str(error)}
            finally:
                for file in files:
                    os.close(file)
            send(self.connection, answer)

    def do_load(self, request: Any, files: list[int]) -> Any:
        """Load an image; answers the parameters of its entries and where its memory lies."""
        # The loader tells libraries apart by path, so the descriptor stays open (and its number taken) meanwhile.
        held = os.dup(files[0])
        image = ctypes.CDLL(f"/proc/self/fd/{held}", mode=os.RTLD_NOW | os.RTLD_LOCAL)
        self.held[request["image"]] = held
        image.fsr_host_init(
            ctypes.c_void_p(self.stacks),
            ctypes.c_size_t(self.stack_stride),
            STACK_COUNT,
            ctypes.c_void_p(self.fault_at),
        )
        self.images[request["image"]] = image
        base, size, start, dynamic = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_void_p()
        image.fsr_host_shared(ctypes.byref(base), ctypes.byref(size), ctypes.byref(start), ctypes.byref(dynamic))
        entries = {}
        for symbol in request["symbols"]:
            entry = Entry.in_dll(image, symbol)
            entries[symbol] = [entry.sizes[: entry.count], entry.kinds.decode()]
        return {"entries": entries, "shared": base.value or 0, "dynamic": dynamic.value, "base": start.value}

    def do_unload(self, request: Any, files: list[int]) -> Any:
        """Forget an image."""
        image = self.images.pop(request["image"], None)
        if image is not None:
            libc.dlclose(ctypes.c_void_p(image._handle))
            os.close(self.held.pop(request["image"]))
        return {}

    def do_map(self, request: Any, files: list[int]) -> Any:
        """Map the buffers of a prepared plan; answers their regions' addresses."""
        memory = Memory(files[0], request["regions"])
        self.memories[request["memory"]] = memory
        return {"addresses": memory.addresses}

    def do_unmap(self, request: Any, files: list[int]) -> Any:
        """Forget the buffers of a prepared plan."""
        memory = self.memories.pop(request["memory"], None)
        if memory is not None:
            memory.close()
        return {}

    def do_run(self, request: Any, files: list[int]) -> Any:
        """Clear zeroed scratch, then launch after launch; of each, with ``blocks``, only those. Answers how many were
        completed."""
        image = self.images[request["image"]]
        with limited_to(request["timeout_s"]):
            set_up(request)
            for done, launch in enumerate(request["launches"]):
                *launched, keep = self._unpack(image, launch)
                if numbers := request.get("blocks"):
                    chosen = (ctypes.c_uint64 * len(numbers))(*numbers)
                    good = image.fsr_host_run_blocks(*launched, chosen, ctypes.c_uint64(len(numbers)))
                else:
                    good = image.fsr_host_run(*launched)
                del keep
                if not good:
                    return {"done": done, "fault": True}
        return {"done": len(request["launches"])}

    def do_record(self, request: Any, files: list[int]) -> Any:
        """As run, with every access recorded. Answers a report a launch and the faults of all."""
        image = self.images[request["image"]]
        answer: dict[str, Any] = {"launches": []}
        with limited_to(request["timeout_s"]):
            self._watch_regions(image, request)
            for done, launch in enumerate(request["launches"]):
                summary = RecordSummary()
                entry, pointers, grid, block, shared, keep = self._unpack(image, launch)
                budget, complete = ctypes.c_uint64(request["budget"]), int(done + 1 < len(request["launches"]))
                good = image.fsr_record_launch(
                    entry, pointers, grid, block, shared, budget, complete, ctypes.byref(summary)
                )
                del keep
                if not good:
                    answer |= {"done": done, "fault": True}
                    break
                answer["launches"].append(report(image, summary))
        return answer | {"found": found_faults(image)}

    def do_watch(self, request: Any, files: list[int]) -> Any:
        """As run, in another order of blocks and threads and with every access looked at. Answers the faults."""
        image = self.images[request["image"]]
        order = Order(**request["order"], watched=1)
        answer: dict[str, Any] = {}
        with limited_to(request["timeout_s"]):
            self._watch_regions(image, request)
            for done, launch in enumerate(request["launches"]):
                entry, pointers, grid, block, shared, keep = self._unpack(image, launch)
                complete = int(done + 1 < len(request["launches"]))
                good = image.fsr_watch_launch(entry, pointers, grid, block, shared, ctypes.byref(order), complete)
                del keep
                if not good:
                    answer |= {"done": done, "fault": True}
                    break
        return answer | {"found": found_faults(image)}

    def do_trace(self, request: Any, files: list[int]) -> Any:
        """As run, with every value's expression made (tracer.h). The file takes the numbers of the elements' nodes,
        then the nodes. Answers how many there are and what was lost. ``blocks``: of each launch those that run, or
        none for all; then only what was written is told. ``threads``: of each block those that are watched, or none for
        all."""
        image = self.images[request["image"]]
        at = _map(None, request["size"], _PROT_RW, _MAP_SHARED, files[0])
        try:
            with limited_to(request["timeout_s"]):
                set_up(request)
                nodes = ctypes.c_void_p(at + request["room"])
                if not image.fsr_trace_begin(nodes, request["capacity"]):
                    raise MemoryError("no room for the nodes")
                for begin, *rest in request["regions"]:
                    image.fsr_trace_region(ctypes.c_void_p(begin), *rest)
                for launch, scalars, blocks in zip(
                    request["launches"], request["scalars"], request["blocks"], strict=True
                ):
                    entry, pointers, grid, block, shared, keep = self._unpack(image, launch)
                    for value, region in zip(keep, scalars, strict=True):
                        if region:
                            image.fsr_trace_region(value, 1, region[1], region[0], 0)
                    image.fsr_trace_launch()
                    chosen = (ctypes.c_uint64 * len(blocks))(*blocks)
                    follow_threads(image, request["threads"], request["alone"])
                    good = (
                        image.fsr_host_run_blocks(
                            entry, pointers, grid, block, shared, chosen, ctypes.c_uint64(len(blocks))
                        )
                        if blocks
                        else image.fsr_host_run(entry, pointers, grid, block, shared)
                    )
                    del keep
                    if not good:
                        return {"fault": True}
                part = int(any(request["blocks"]))
                follow_threads(image, [], False)
                for begin, count, kind, offset in request["reads"]:
                    result = ctypes.c_void_p(at + 4 * offset)
                    image.fsr_trace_read(ctypes.c_void_p(begin), count, kind, result, part)
            return {"nodes": image.fsr_trace_launch(), "lost": image.fsr_trace_lost()}
        finally:
            libc.munmap(ctypes.c_void_p(at), request["size"])

    def _watch_regions(self, image: ctypes.CDLL, request: Any) -> None:
        set_up(request)
        image.fsr_record_begin()
        for begin, size, *rest in request["regions"]:
            image.fsr_record_region(ctypes.c_size_t(begin), ctypes.c_size_t(size), *rest)

    def _unpack(self, image: ctypes.CDLL, launch: Any) -> tuple[Any, ...]:
        pointers, keep = arguments(launch["args"])
        entry = ctypes.byref(Entry.in_dll(image, launch["symbol"]))
        return entry, pointers, triple(launch["grid"]), triple(launch["block"]), ctypes.c_uint(launch["shared"]), keep


def follow_threads(image: ctypes.CDLL, numbers: list[int], alone: bool) -> None:
    """Of each block only these are watched; all with none. ``alone``: threads do not talk to each other."""
    image.fsr_trace_threads((ctypes.c_uint * len(numbers))(*numbers), ctypes.c_uint(len(numbers)), int(alone))


@contextmanager
def limited_to(timeout_s: float) -> Iterator[None]:
    """A parent that died cannot kill a spinning kernel: then the operating system's timer does, of CPU time."""
    signal.setitimer(signal.ITIMER_PROF, timeout_s + 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def set_up(request: Any) -> None:
    """Zero memory (address and size of each range) and fill ``__constant__`` variables (where to, where from, size)."""
    for address, size in request["zero"]:
        ctypes.memset(address, 0, size)
    for to, source, size in request["constants"]:
        ctypes.memmove(to, source, size)


def report(image: ctypes.CDLL, summary: RecordSummary) -> dict[str, Any]:
    """What was recorded of the last launch."""
    sites, blocks = ctypes.c_void_p(), ctypes.c_void_p()
    stride = ctypes.c_size_t()
    count = image.fsr_record_sites(ctypes.byref(sites), ctypes.byref(stride))
    site_rows = [fields(Site.from_address((sites.value or 0) + i * stride.value)) for i in range(count)]
    count = image.fsr_record_blocks(ctypes.byref(blocks), ctypes.byref(stride))
    block_rows = [BasicBlock.from_address((blocks.value or 0) + i * stride.value) for i in range(count)]
    return {
        "executed": summary.executed, "barriers": summary.barriers, "warp_syncs": summary.warp_syncs,
        "tensor": summary.tensor,
        "sites": site_rows, "blocks": [[row.pc, row.warps] for row in block_rows],
    }  # fmt: skip


def found_faults(image: ctypes.CDLL) -> list[dict[str, Any]]:
    """What the recorder found wrong since its last beginning."""
    rows = ctypes.POINTER(FoundFault)()
    count = image.fsr_record_faults(ctypes.byref(rows))
    return [fields(rows[i]) for i in range(count)]


def fields(structure: ctypes.Structure) -> dict[str, Any]:
    """A structure as JSON takes it."""
    values = {}
    for name, *_ in structure._fields_:
        value = getattr(structure, name)
        values[name] = value.decode(errors="replace") if isinstance(value, bytes) else value
        if isinstance(value, ctypes.Array):
            values[name] = list(value)
    return values


def arguments(texts: list[str]) -> tuple[Any, list[Any]]:
    """Parameter values (hexadecimal bytes) as the ``void**`` of a launch, and what must stay alive meanwhile."""
    values = [ctypes.create_string_buffer(bytes.fromhex(text), max(len(text) // 2, 16)) for text in texts]
    pointers = (ctypes.c_void_p * max(len(values), 1))(*(ctypes.addressof(value) for value in values))
    return pointers, values


def triple(dims: list[int]) -> Any:
    """Three dimensions as ``const unsigned*``."""
    return (ctypes.c_uint * 3)(*dims)


def restrict(contain: str) -> None:
    """Give up what a kernel never needs; ``contain`` ('module:function', may be empty) gives up more."""
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    for what, limit in (
        (resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_AS, ADDRESS_LIMIT),
        (resource.RLIMIT_NOFILE, 256),
    ):  # fmt: skip
        _, hard = resource.getrlimit(what)
        wanted = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(what, (wanted, wanted))
    if contain:
        module, _, function = contain.partition(":")
        getattr(importlib.import_module(module), function)()


def main(arguments_: list[str]) -> None:
    """``server FAULT_FILE CONTAIN CONNECTION``: file numbers inherited from the parent."""
    die_with_parent()
    fault_file, contain, connection = int(arguments_[0]), arguments_[1], socket.socket(fileno=int(arguments_[2]))
    server = Server(connection, fault_file)
    os.close(fault_file)
    restrict(contain)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the parent was killed with an answer under way
        send(connection, {"ready": os.getpid()})
        server.serve()


if __name__ == "__main__":
    main(sys.argv[1:])
