"""Profiles written by hand, as the recorder would give them for kernels whose accesses are known on paper."""

import dataclasses

import pytest

from fsr.backends.protocol import AccessProfile, AccessSite, LaunchProfile


def site(elements: float, sectors_per_request: float, **changes: object) -> AccessSite:
    """A read of ``elements`` floats, each once, by full warps; ``changes`` replace fields."""
    requests = elements / 32
    made = AccessSite(
        line=3, space="global", kind="read", bytes=4, buffer="x", requests=requests, lanes=elements,
        sectors=requests * sectors_per_request, unique_sectors=elements / 8, wavefronts=0.0,
        block_sectors=elements / 8, lines=requests * (sectors_per_request if sectors_per_request > 4 else 1.0),
    )  # fmt: skip
    return dataclasses.replace(made, **changes)  # type: ignore[arg-type]


def launch(sites: list[AccessSite], blocks: int = 65536, threads: int = 256, **changes: object) -> LaunchProfile:
    """A launch of those sites with about ten instructions a warp."""
    warps = blocks * threads / 32
    made = LaunchProfile("k", blocks, threads, blocks, 0, 10.0 * warps, 0.0, 0.0, tuple(sites))
    return dataclasses.replace(made, **changes)  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def make():
    """The two builders and one for whole profiles: make.site, make.launch, make.profile."""

    class Make:
        pass

    make = Make()
    make.site, make.launch = site, launch  # type: ignore[attr-defined]
    make.profile = lambda *launches: AccessProfile(tuple(launches))  # type: ignore[attr-defined]
    return make
