"""The process of the service: its lock, its log, its way in, its signals. ``python -m fsrd.main [FOLDER...]``."""

from __future__ import annotations

import logging
import os
import signal
import sys
from pathlib import Path
from queue import SimpleQueue

from fsr.errors import FsrError, MissingToolError
from fsr.settings import read_settings
from fsrd.config import Config, read_config
from fsrd.http.app import application
from fsrd.http.server import Server
from fsrd.service.devices import Slot, slots_of
from fsrd.service.instance import Instance, Place
from fsrd.service.logs import set_up
from fsrd.service.service import Service

STOP, RELOAD = "stop", "reload"
LOG = logging.getLogger(__name__)


def serve(folders: tuple[str, ...], *, foreground: bool) -> None:
    """Run the service until it is told to stop (SIGTERM, SIGINT, the API); SIGHUP reads the configuration anew.

    Raises UsageError when another runs in this home or the configuration is wrong, MissingToolError without a device,
    StorageError when its files cannot be used."""
    settings = read_settings()
    place = Place.of(settings)
    config = read_config(place.config, folders)
    instance = Instance(place)
    wishes: SimpleQueue[str] = SimpleQueue()  # signal handlers may put into it at any moment
    try:
        set_up(place.log, foreground=foreground)
        service = Service(settings, config, _slots(config))
        service.on_request(
            stop=lambda: wishes.put(STOP),
            reload=lambda: service.reload(read_config(place.config, folders)),
        )  # fmt: skip
        server = Server(application(service), place, config.http.port if config.http.enabled else None)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: wishes.put(STOP))
        signal.signal(signal.SIGHUP, lambda *_: wishes.put(RELOAD))
        try:
            service.start()
            server.start()
            LOG.info("ready: %s", server.address or f"on {place.socket}")
            while wishes.get() != STOP:
                _reload(service)
        finally:
            LOG.info("ending")
            service.bus.close()
            server.close()
            service.close()
    finally:
        instance.close()


def _slots(config: Config) -> tuple[Slot, ...]:
    """Those that there are; a cluster that does not answer is looked for again and again."""
    run = config.run
    try:
        return slots_of(run.device, run.target, run.ray)
    except MissingToolError as fault:
        if run.ray is None:
            raise
        LOG.warning("%s", fault)
        return ()


def _reload(service: Service) -> None:
    try:
        service.request_reload()
    except FsrError as fault:  # the old one stays
        LOG.error("%s", fault)


def main() -> None:
    """The service in the background: standard error goes to the log's folder."""
    os.chdir(Path.home())
    try:
        serve(tuple(sys.argv[1:]), foreground=False)
    except FsrError as fault:
        print(f"fsr: {fault}", file=sys.stderr)
        sys.exit(fault.exit_code)


if __name__ == "__main__":
    main()
