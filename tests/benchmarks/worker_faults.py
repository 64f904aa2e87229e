"""Threads of ten steps and two decisions, while their workers are killed, stopped and cut off.

    python -m tests.benchmarks.worker_faults [--threads 500] [--workers 4] [--seconds 900] [--frozen 35]

A random worker is killed every second and restarted; one's clock is an hour ahead; the server restarts now
and then; everything is queued twice; two people decide all that waits at the same time. Prints what was done,
what came of it, and whatever is not as it has to be; exit code 1 where something is not.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

from tests.support.fleet import Fleet, storm, table
from tests.support.postgres import Postgres, binaries


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=500)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument(
        "--seconds", type=float, default=900, help="of faults; what is left then is waited for"
    )
    parser.add_argument("--frozen", type=float, default=35.0, help="seconds for which a worker is stopped")
    parser.add_argument("--every", type=float, default=1.0, help="seconds between two kills")
    options = parser.parse_args()
    programs = binaries()
    if programs is None:
        raise SystemExit("no PostgreSQL server here")
    server = Postgres(programs, listen="*")
    folder = Path(tempfile.mkdtemp(prefix="fleet"))
    fleet = Fleet(server, folder, workers=options.workers)
    try:
        fleet.start_all()
        started = time.monotonic()
        names = fleet.begin(options.threads)
        end = fleet.decide()
        storm(fleet, names, options.seconds, frozen=options.frozen, kill_every=options.every)
        while (done := fleet.done()) < len(names):
            print(f"{done} of {len(names)} are done", file=sys.stderr, flush=True)
            if time.monotonic() - started > options.seconds + 600:
                break
            time.sleep(5)
            fleet.begin_again()
        took = time.monotonic() - started
        end()
        wrong = fleet.wrong(names)
        print(table(fleet, took))
        print("\n".join(wrong) or "nothing is wrong")
        print(
            json.dumps(
                {"benchmark": "worker_faults", **fleet.counts, "seconds": round(took), "wrong": len(wrong)}
            )
        )
    finally:
        fleet.close()
        server.close()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
