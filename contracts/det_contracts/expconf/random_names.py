"""Random names for experiments without a name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

ADVERBS = """
    barely boldly briskly calmly dearly deeply early evenly fairly finely firmly fondly freely freshly
    gently gladly gravely hardly highly justly keenly kindly lately lightly loosely loudly mildly
    mostly neatly nearly newly nicely openly oddly plainly proudly purely quickly quietly rarely
    really richly rightly sharply shyly simply slowly smoothly softly solely steadily strongly subtly
    surely sweetly truly vastly vividly warmly wholly wildly wisely
"""
ADJECTIVES = """
    able agile amber ample blue brave bright brisk bronze calm candid clear clever cosmic crisp curious
    daring eager early earnest fair fancy fleet fond gentle glad golden grand green happy hardy honest
    humble jolly keen lively loyal lucid lucky mellow merry mighty modest neat noble patient plucky
    polite proud quick quiet rapid ready serene silver steady stout sunny swift tidy trusty vivid witty
"""
ANIMALS = """
    adder albatross badger barbel beaver bison bittern bream buzzard caribou carp chamois cod coot crane
    curlew dolphin dormouse eagle eider elk falcon ferret finch gannet gecko grouse gull hake hare hawk
    heron hornet ibex jackdaw kestrel kite lapwing lark lynx magpie marten minnow mole moose newt orca
    osprey otter owl perch petrel pike plover puffin raven robin salmon seal skua stoat stork swift tern
    thrush toad trout vole walrus whale wren
"""


def random_name(pick: Callable[[Sequence[str]], str]) -> str:
    """Return a name such as `Experiment (mildly-curious-otter)`. `pick` chooses a word from a list."""
    return f"Experiment ({pick(ADVERBS.split())}-{pick(ADJECTIVES.split())}-{pick(ANIMALS.split())})"
