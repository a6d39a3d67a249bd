#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Continues many texts: for each FILE writes FILE.out. Workers share one model, each has a session
of its own; a file's seed is its own too, so the result does not depend on who does what.
    batch.py MODEL WORKERS FILE...
"""
import concurrent.futures
import pathlib
import sys
import threading

import stint

local = threading.local()  # each worker's session


def work(model, path, seed):
    if not hasattr(local, "session"):
        local.session = model.session(threads=1)
    local.session.truncate(0)
    drawn = stint.Sampling(temperature=0.8, top_p=0.95, seed=seed)
    prompt = path.read_text(encoding="utf-8").rstrip()
    text = local.session.generate(prompt, max_tokens=32, sampling=drawn).text()
    path.with_name(path.name + ".out").write_text(prompt + text + "\n", encoding="utf-8")


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    files = [pathlib.Path(name) for name in sys.argv[3:]]
    failed = 0
    with stint.Model.open(sys.argv[1]) as model, \
            concurrent.futures.ThreadPoolExecutor(int(sys.argv[2])) as pool:
        jobs = {pool.submit(work, model, path, i): path for i, path in enumerate(files)}
        for job in concurrent.futures.as_completed(jobs):
            if job.exception() is not None:  # one bad file does not stop the others
                print(f"{jobs[job]}: {job.exception()}", file=sys.stderr)
                failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
