"""Bytes into lines, whatever the chunks are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.shim.lines import CONTINUATION_MARK, PIECE_BYTES, LineSplitter


def joined(pieces, head=b""):
    """The line that was cut: its pieces without the marks."""
    assert all(piece.endswith(CONTINUATION_MARK) for piece in pieces[:-1])
    assert all(piece.startswith(head + CONTINUATION_MARK) for piece in pieces[1:])
    text = [pieces[0], *(piece[len(head + CONTINUATION_MARK) :] for piece in pieces[1:])]
    return b"".join([piece[: -len(CONTINUATION_MARK)] for piece in text[:-1]] + text[-1:])


def cut(*chunks):
    lines = LineSplitter()
    return [line for chunk in chunks for line in lines.feed(chunk)] + lines.finish()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"a\nb\n", [b"a", b"b"]),
        (b"a\n\nb", [b"a", b"", b"b"]),
        (b"a\r\nb\r\n", [b"a", b"b"]),
        (b"10%\r20%\rdone\n", [b"10%", b"20%", b"done"]),
        (b"\r10%\r20%\nnext\n", [b"10%", b"20%", b"next"]),
        (b"\n\n", [b"", b""]),
        (b"\r\n", [b""]),
        (b"\x00a\xff\n", [b"\x00a\xff"]),
        (b"", []),
    ],
)
def test_line_ends(text, expected):
    assert cut(text) == expected


def test_a_line_end_in_two_chunks_is_one():
    assert cut(b"a\r", b"\nb\r", b"\n") == [b"a", b"b"]


def test_a_return_alone_shows_the_line_at_once():
    assert LineSplitter().feed(b"10%\r") == [b"10%"]


@given(st.lists(st.text("ab\n", max_size=5).map(str.encode), max_size=8))
def test_chunks_do_not_matter(chunks):
    whole = b"".join(chunks)
    expected = whole.split(b"\n")
    assert cut(*chunks) == (expected if expected[-1] else expected[:-1])


@given(st.lists(st.sampled_from([b"", b"a", b"bc", b"\r", b"\n", b"\r\n", b"d\r\n"]), max_size=10))
def test_no_text_is_lost(chunks):
    assert b"".join(cut(*chunks)) == b"".join(chunks).replace(b"\r", b"").replace(b"\n", b"")


@pytest.mark.parametrize("chunk", [1000, 65536, 1_000_000])
@pytest.mark.parametrize("end", [b"", b"\n"])
def test_a_long_line_comes_in_pieces(chunk, end):
    text = b"x" * 1_000_000 + end
    pieces = cut(*[text[i : i + chunk] for i in range(0, len(text), chunk)])
    assert joined(pieces) == b"x" * 1_000_000
    assert max(map(len, pieces)) <= PIECE_BYTES
    assert len(pieces) <= 1_000_000 // PIECE_BYTES + 2 + 1_000_000 // chunk


def test_pieces_are_whole_characters():
    text = "é€😀".encode() * 20_000
    pieces = cut(*[text[i : i + 65536] for i in range(0, len(text), 65536)])
    assert all(piece.decode() for piece in pieces)
    assert joined(pieces) == text


@pytest.mark.parametrize("chunk", [100, 65536, 1_000_000])
@pytest.mark.parametrize("ends", [b"\n", b"\r", b"\r\n"])
def test_each_piece_says_its_rank_and_level_and_what_is_short_is_not_marked(chunk, ends):
    head = b"[rank=3] ERROR: "
    text = (
        b"short" + ends + head + b"y" * 100_000 + ends + b"WARNING: " + b"z" * 50_000 + ends + b"next" + ends
    )
    first, *pieces, last = cut(*[text[i : i + chunk] for i in range(0, len(text), chunk)])
    assert (first, last) == (b"short", b"next")
    wrong = [piece for piece in pieces if b"y" in piece]
    warned = pieces[len(wrong) :]
    assert len(wrong) >= 4
    assert len(warned) >= 2
    assert all(piece.startswith(head) for piece in wrong)
    assert all(piece.startswith(b"WARNING: ") for piece in warned)
    assert joined(wrong, head) == head + b"y" * 100_000
    assert joined(warned, b"WARNING: ") == b"WARNING: " + b"z" * 50_000


@pytest.mark.parametrize("start", [b" ", b"  ERROR: ", b"[rank=] ", b"ERRORS: ", b"[rank=1"])
def test_what_only_looks_like_a_rank_or_level_is_not_said_again(start):
    text = start + b"x" * 100_000
    assert joined(cut(text + b"\n")) == text


@pytest.mark.parametrize("chunk", [1, 1000, PIECE_BYTES])
def test_a_line_of_just_the_longest_length_is_whole(chunk):
    text = b"x" * PIECE_BYTES
    pieces = cut(*[(text + b"\n")[i : i + chunk] for i in range(0, len(text) + 1, chunk)])
    assert pieces == [text]


def test_what_goes_on_is_not_taken_for_a_line_that_says_its_level():
    text = b"x" * (PIECE_BYTES - len(CONTINUATION_MARK)) + b"ERROR: no"
    assert cut(text) == [text[:-9] + CONTINUATION_MARK, CONTINUATION_MARK + b"ERROR: no"]


def test_what_is_held_back_is_bounded():
    lines = LineSplitter()
    for _ in range(100):
        lines.feed(b"y" * 65536)
        assert len(lines.finish()[0]) <= PIECE_BYTES
