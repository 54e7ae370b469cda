"""`det completion`: shell completion of nouns, verbs and options.

The shell calls `det completion words WORD...` for candidates, so the grammar is not duplicated.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from determined.cli.grammar import Arg, Noun, OneOf, Verb, arg
from determined.transport.rest import Session

_GLOBAL = ("--help", "--user", "--master", "--version", "--debug")
_WITH_VALUE = ("-u", "--user", "-m", "--master")

BASH = """_det() {
    local IFS=$'\\n'
    COMPREPLY=($(compgen -W "$(det completion words -- "${COMP_WORDS[@]:1:COMP_CWORD-1}" 2>/dev/null)" \\
        -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _det det
"""
ZSH = """#compdef det
_det() {
    local -a found
    found=("${(@f)$(det completion words -- "${(@)words[2,CURRENT-1]}" 2>/dev/null)}")
    compadd -a found
    _files
}
compdef _det det
"""
FISH = """function __det_words
    set -l typed (commandline -opc)
    det completion words -- $typed[2..-1] 2>/dev/null
end
complete -c det -a '(__det_words)'
"""
_SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


def completion(session: Session, args: argparse.Namespace) -> None:
    """Print the script that the shell reads at startup, or the candidates after some words."""
    if args.shell == "words":
        # In here, because that module imports this one.
        from determined.cli.cli import ROOT

        typed = args.words[1:] if args.words[:1] == ["--"] else args.words
        print("\n".join(following(ROOT, typed)))
    else:
        print(_SCRIPTS[args.shell], end="")


def following(root: Noun, typed: Sequence[str]) -> list[str]:
    """Return the candidates after these complete words."""
    node: Noun | Verb = root
    words = iter(typed)
    for word in words:
        if node is root and word in _WITH_VALUE:
            next(words, None)
        elif isinstance(node, Noun) and not word.startswith("-"):
            child = next((noun for noun in node.children if word in noun.names.split()), None)
            if child is None:
                return []
            node = child
    if isinstance(node, Verb):
        return _options(node)
    own = [name for child in node.children for name in child.names.split()[:1]]
    return own + list(_GLOBAL if node is root else ("--help",))


def _options(verb: Verb) -> list[str]:
    args = [
        argument
        for item in verb.args
        for argument in _single(item)
        if argument.options.get("help") != argparse.SUPPRESS
    ]
    long = [name for argument in args for name in argument.names if name.startswith("--")]
    choices = [
        str(value)
        for argument in args
        if not argument.names[0].startswith("-")
        for value in _choices(argument)
    ]
    return choices + long + ["--help"]


def _single(item: Arg | OneOf) -> Sequence[Arg]:
    return item.args if isinstance(item, OneOf) else (item,)


def _choices(argument: Arg) -> Sequence[object]:
    choices: Sequence[object] = argument.options.get("choices") or ()
    return choices


VERB = Verb(
    "completion",
    "print a script for completion in a shell",
    completion,
    (
        arg("shell", choices=("bash", "zsh", "fish", "words"), help="as in: source <(det completion bash)"),
        arg("words", nargs=argparse.REMAINDER, help=argparse.SUPPRESS),
    ),
    login=False,
    check=False,
)
