"""Every text that a person, a script or a worker can send has a limit, also one that is added later."""

import msgspec
import pytest
from msgspec import inspect

from det_contracts import bounds, codec
from det_contracts.commands import OWNER_OF, CreateExperiment, KeepSettings, SetModel, SetProject, SetUser
from det_contracts.events.gateway import Note, Setting
from det_contracts.limits import LABELS, PAGE_CHARACTERS, STATED_BYTES, TEXT_CHARACTERS, TITLE_CHARACTERS
from det_contracts.problems import Refused

BEYOND = "x" * (STATED_BYTES + 1)
FREE = (inspect.StrType, inspect.AnyType, inspect.RawType, inspect.CustomType)
SCRIPT_FIELDS = {("trial.operation_completed", "metric"), ("trial.checkpoint_stored", "metadata", "name")}
"""What a custom searcher or the user's own code makes of them: as large as a fact may be, and no larger."""


def texts(info, path=()):
    """Paths to everything in a type that may hold a text of any length."""
    if isinstance(info, inspect.StructType):
        for field in info.fields:
            yield from texts(field.type, (*path, field.encode_name))
    elif isinstance(info, inspect.UnionType):
        for member in info.types:
            yield from texts(member, path)
    elif isinstance(info, inspect.VarTupleType | inspect.ListType | inspect.SetType):
        yield from texts(info.item_type, (*path, 0))
    elif isinstance(info, inspect.DictType):
        yield from texts(info.value_type, (*path, "name"))
    elif isinstance(info, inspect.Metadata):
        yield from texts(info.type, path)
    elif isinstance(info, FREE) and not (getattr(info, "max_length", 0) or getattr(info, "pattern", "")):
        yield path


def sample(info, path):
    """A plain value of a type, as small as may be, with a text beyond all limits where the path leads."""
    if isinstance(info, inspect.StructType):
        made = {} if info.tag is None else {info.tag_field: info.tag}
        for field in info.fields:
            here = path[1:] if path and path[0] == field.encode_name else None
            if field.required or here is not None:
                made[field.encode_name] = sample(field.type, here)
        return made
    if isinstance(info, inspect.UnionType):
        fitting = [member for member in info.types if path is not None and path in set(texts(member))]
        return sample((fitting or [member for member in info.types if not _is_nothing(member)])[0], path)
    if isinstance(info, inspect.VarTupleType | inspect.ListType | inspect.SetType):
        return [] if path is None else [sample(info.item_type, path[1:])]
    if isinstance(info, inspect.DictType):
        return {} if path is None else {"name": sample(info.value_type, path[1:])}
    if isinstance(info, FREE):
        return "x" if path is None else BEYOND
    if isinstance(info, inspect.LiteralType):
        return info.values[0]
    return {inspect.IntType: 1, inspect.FloatType: 1.0, inspect.BoolType: True}.get(type(info))


def _is_nothing(info):
    return isinstance(info, inspect.NoneType) or "Unset" in type(info).__name__


def cases():
    for kind in OWNER_OF:
        if kind.__struct_config__.tag not in bounds.OPERATOR_COMMANDS:
            for path in texts(inspect.type_info(kind)):
                if not set(path) & set(bounds.UNBOUNDED_OBJECTS):
                    yield pytest.param(kind, path, id=f"{kind.__name__}-{'.'.join(map(str, path))}")


@pytest.mark.parametrize(("kind", "path"), list(cases()))
def test_every_text_of_every_command_has_a_limit(kind, path):
    command = msgspec.convert(sample(inspect.type_info(kind), path), kind)
    with pytest.raises(Refused, match=r"at most [\d,]+ are taken; choose a shorter one"):
        bounds.check(command)


def test_the_walk_finds_what_is_nested_and_what_is_new():
    class Inner(msgspec.Struct):
        words: tuple[str, ...]

    class New(msgspec.Struct, tag="new"):
        inner: Inner
        anything: dict[str, object]

    info = inspect.type_info(New)
    assert set(texts(info)) == {("inner", "words", 0), ("anything", "name")}
    for path in texts(info):
        with pytest.raises(Refused):
            bounds.check(msgspec.convert(sample(info, path), New))


LABELLED = tuple(str(number) for number in range(LABELS))
GENEROUS = [
    SetUser(username="x" * TITLE_CHARACTERS, display_name="x" * TITLE_CHARACTERS, user="ann"),
    SetModel(name="m", description="x" * TEXT_CHARACTERS, notes="x" * PAGE_CHARACTERS, user="ann"),
    SetModel(name="m", labels=LABELLED, metadata={"a": "x" * 1_000_000}, user="ann"),
    SetProject(name="p", notes=(Note("n", "x" * PAGE_CHARACTERS),), user="ann"),
    KeepSettings(user_id=1, settings=(Setting("p", "k", "x" * PAGE_CHARACTERS),), user="ann"),
    CreateExperiment(
        user="ann",
        config={
            "name": "x" * TITLE_CHARACTERS,
            "entrypoint": "x" * 1_000_000,
            "data": {"a": "x" * 1_000_000},
        },
        original_config="#" * 2_000_000,
    ),
]


@pytest.mark.parametrize("command", GENEROUS, ids=lambda command: type(command).__name__)
def test_what_people_may_want_is_taken(command):
    bounds.check(command)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (SetModel(name="x" * (TITLE_CHARACTERS + 1), user="a"), "name has 2,001 characters"),
        (SetModel(name="m", labels=(*LABELLED, "one"), user="a"), "labels has 1,001 entries"),
        (
            CreateExperiment(user="a", config={"description": "y" * 10_001}, original_config=""),
            "description has 10,001 characters",
        ),
    ],
)
def test_a_refusal_names_the_field_and_its_limit(command, message):
    with pytest.raises(Refused, match=message):
        bounds.check(command)


def test_every_text_that_a_script_states_has_a_limit_in_its_record():
    """What workers state is looked at by `worker.limit_problem`, which walks values as this does."""
    stated = [kind for kind in codec.kinds() if kind.name.startswith("trial.")]
    text_fields = {(kind.name, *path) for kind in stated for path in texts(inspect.type_info(kind.record))}
    assert len(stated) > 5
    assert text_fields == SCRIPT_FIELDS
