#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Streams the continuation of a prompt.
    generate.py MODEL "PROMPT"
"""
import sys

import stint


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    drawn = stint.Sampling(temperature=0.7, top_p=0.9, seed=7)
    # A model can be shared by many sessions; a session is one conversation.
    with stint.Model.open(sys.argv[1]) as model, model.session() as session:
        generation = session.generate(sys.argv[2], max_tokens=48, sampling=drawn)
        for piece in generation:  # leaving this loop early would end the generation
            print(piece, end="", flush=True)
    print()
    result = generation.result
    speed = result.generated_tokens / max(result.decode_seconds, 1e-9)
    print(f"{result.generated_tokens} tokens, {speed:.0f} a second", file=sys.stderr)


if __name__ == "__main__":
    main()
