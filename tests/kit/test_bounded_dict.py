from services.kit.bounded_dict import BoundedDict


def test_the_oldest_of_too_many_is_evicted():
    recent = BoundedDict[str, int](3)
    for number, name in enumerate("abcd"):
        recent[name] = number
    assert dict(recent) == {"b": 1, "c": 2, "d": 3}


def test_what_is_set_again_or_moved_stays_longer():
    recent = BoundedDict[str, int](2)
    recent["a"], recent["b"], recent["a"], recent["c"] = 1, 2, 3, 4
    assert list(recent.items()) == [("a", 3), ("c", 4)]
    recent.move_to_end("a")
    recent["d"] = 5
    assert list(recent) == ["a", "d"]


def test_so_much_is_remembered_as_a_set():
    recent = BoundedDict[int, None](3)
    for key in range(5):
        recent[key] = None
    recent.pop(4, None)
    recent.pop(17, None)
    assert [key in recent for key in range(5)] == [False, False, True, True, False]
