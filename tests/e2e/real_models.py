# SPDX-License-Identifier: Apache-2.0
"""Where tests find real models, or None: in STINT_REAL_MODELS, else ~/.cache/stint/real-models,
else where `stint pull` leaves them."""
import os
import pathlib

HOME = pathlib.Path.home()
FOLDER = pathlib.Path(os.environ.get("STINT_REAL_MODELS") or HOME / ".cache/stint/real-models")
PULLED = pathlib.Path(os.environ.get("STINT_MODELS") or HOME / ".local/share/stint/models")


def find(file, name):
    places = (FOLDER / file, PULLED / f"{name}.gguf")
    return next((path for path in places if path.exists()), None)


SMOLLM2 = find("smollm2-135m-instruct.Q4_1.gguf", "smollm2-135m")
QWEN = find("qwen2.5-coder-0.5b-instruct.Q4_K_M.gguf", "qwen2.5-coder-0.5b")
