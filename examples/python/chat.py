#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A conversation: reads a message per line, streams each answer; Ctrl-C ends an answer.
    chat.py MODEL [MOST-TOKENS-OF-AN-ANSWER]
"""
import sys

import stint


def answer(session, messages, most):
    """What the model says, streamed; less of it after Ctrl-C."""
    pieces = []
    try:
        # Of the conversation only what the session does not hold yet is computed.
        for piece in session.chat(messages, max_tokens=most):
            print(piece, end="", flush=True)
            pieces.append(piece)
    except KeyboardInterrupt:
        pass
    print()
    return "".join(pieces)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    most = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    messages = []
    with stint.Model.open(sys.argv[1]) as model, model.session() as session:
        for line in sys.stdin:
            messages.append({"role": "user", "content": line.rstrip("\n")})
            messages.append({"role": "assistant", "content": answer(session, messages, most)})


if __name__ == "__main__":
    try:
        main()
    except stint.StintError as error:
        sys.exit(str(error))
