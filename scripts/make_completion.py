#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a completion for bash from what --help prints: commands, their options, and the choices
of an option that has them. Use: make_completion.py FILE COMMAND..."""
import pathlib
import sys

from help_text import ask, read_overview, read_page

FRAME = """# SPDX-License-Identifier: Apache-2.0
# Completion of stint's command line for bash; made from its --help.
_stint() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} words=
    if [ "$COMP_CWORD" = 1 ]; then
        words="{commands} help --help --version"
    else
        case "${{COMP_WORDS[1]}} $before" in
{choices}
        *)
            case "${{COMP_WORDS[1]}} $word" in
{options}
            "help "*) words="{commands}" ;;
            esac ;;
        esac
    fi
    [ -z "$words" ] || mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}}
complete -o default -F _stint stint
"""


def main():
    path, command = pathlib.Path(sys.argv[1]), sys.argv[2:]
    names = list(read_overview(ask(command, "--help")).commands)
    choices, options = [], []
    for name in names:
        groups = read_page(ask(command, name, "--help", "all")).groups
        rows = [row for group in groups.values() for row in group]
        words = " ".join(f"--{row.name}" for row in rows)
        options.append(f'            "{name} -"*) words="{words}" ;;')
        for row in rows:
            if "|" in row.value:
                values = row.value.replace("|", " ")
                choices.append(f'        "{name} --{row.name}") words="{values}" ;;')
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(FRAME.format(commands=" ".join(names), choices="\n".join(choices),
                                 options="\n".join(options)), encoding="utf-8")


if __name__ == "__main__":
    main()
