"""Schemathesis against the daemon's API: requests made from its OpenAPI document, answers held against it.

    python benchmarks/api_fuzz.py SCHEMATHESIS [--examples 50] [--seed 1]

SCHEMATHESIS is its program (`pip install schemathesis`, in an environment of its own, for it brings a plugin of
pytest). The real service runs behind its real server, on loopback TCP with a token and with stand-ins for runs, so that
jobs begin, fail and end while they are asked about. Exits as the program does: 0 when it finds nothing.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "daemon"))
sys.path.insert(0, str(Path(__file__).parents[1]))

from fsrd.http.app import application
from fsrd.http.server import Server
from tests.daemon.stand_in import kernel, service_of

DOES = ("work 0.05", "fail", "fail for good", "die")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("schemathesis")
    parser.add_argument("--examples", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fsr-api-") as name:
        folder = Path(name)
        service = service_of(folder)
        service.on_request(stop=lambda: None, reload=lambda: None)  # it is asked to again and again
        for number in range(12):
            kernel(folder / "kernels", f"k{number}", DOES[number % len(DOES)])
        service.start()
        server = Server(application(service), service.place, 0)
        server.start()
        base, _, token = server.address.partition("#")
        command = [
            given.schemathesis, "run", f"{base}api/openapi.json", "--header", f"Authorization: Bearer {token}",
            "--max-examples", str(given.examples), "--seed", str(given.seed), "--workers", "1",
        ]  # fmt: skip
        try:
            return subprocess.run(command, cwd=folder, check=False).returncode
        finally:
            service.bus.close()
            server.close()
            service.close()


if __name__ == "__main__":
    sys.exit(main())
