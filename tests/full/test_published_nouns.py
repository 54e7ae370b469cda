"""The other nouns of the published command of 0.25.0, unchanged, on our cluster (client spec, section 6).

Each table holds command lines and what they have to print.
"""

from __future__ import annotations

import functools
import importlib.util
import re
import shutil
from pathlib import Path

import pytest
import requests

from tests.fixtures.local_cluster import TERMINAL, wait_for
from tests.fixtures.published import walk

pytestmark = [pytest.mark.timeout(900), pytest.mark.xdist_group("published")]
LISTINGS = Path(__file__).parents[1] / "dropin" / "listings"
ID = r"[0-9a-f]{8}-[0-9a-f-]{27}"
TEMPLATE = "resources: {slots: 1}\ndescription: of a template\n"
WAITS = """\
name: waits
entrypoint: sleep 600
searcher: {name: single, metric: x, max_length: {batches: 1}}
max_restarts: 0
"""

TEMPLATES = [
    ("template create mine t.yaml", r"Created template mine"),
    ("template list", r"Name +\| Workspace\n-+\+-+\n mine +\| Uncategorized"),
    ("template list -d", r"of a template"),
    ("template describe mine", r"description: of a template\nresources:\n  slots: 1\n"),
    ("template set-value config mine t.yaml", r"Updated template mine"),
    ("template set mine t.yaml", r""),
]
COMMANDS = [
    ("cmd run -d --template mine sleep 600", rf"^(?P<first>{ID})\n$"),
    ("cmd run -d --config resources.slots=1 sleep 600", rf"^(?P<second>{ID})\n$"),
    ("cmd run -d --config resources.slots=2 sleep 600", rf"^(?P<third>{ID})\n$"),
    (
        "cmd list",
        r"id +\| username +\| description +\| state +\| exitStatus +\| resourcePool +\| workspaceName",
    ),
    ("cmd list", r"{first} \| determined \| of a template +\| (RUNNING|STARTING|PULLING|ASSIGNED)"),
    ("cmd list", r"{third} \| determined \| Command: sleep 600 +\| QUEUED"),
    ("cmd list -q", r"^{first}\n{second}\n{third}\n$"),
    ("cmd list --json", r'"id": "{second}"'),
    ("cmd config {first}", r"description: of a template\nentrypoint:\n- sleep\n- '600'\n"),
    ("task list", r"{first} \| {first}\.1 +\| .* 1 \|"),
    ("job list", r"(?P<blocking>task-\d+) \| TYPE_COMMAND \| of a template .* 1/1 .*SCHEDULED .* determined"),
    ("job list", r"(?P<waiting>task-\d+) \| TYPE_COMMAND \| Command: sleep 600 .* 0/2 .*QUEUED"),
    ("job update {waiting} --weight 3", r""),
    ("job list", r"{waiting} .* 3 \| .* 0/2"),
    ("job update-batch {waiting}.weight=2 {blocking}.weight=4", r""),
    ("job list --json", r'"weight": 4'),
    ("job list --yaml", r"jobId: {waiting}"),
    ("slot list", r"{first}\.1"),
    ("cmd set priority {third} 30", r"Set priority of command {third} to 30"),
    ("cmd kill {first}", r"Killed command {first}"),
    ("cmd kill {second} {third}", r"Killed command {second}\nKilled command {third}"),
]
"""On two slots that are shared fairly."""


@pytest.fixture
def folder(tmp_path):
    """What the command lines name."""
    place = shutil.copytree(LISTINGS, tmp_path / "core_api")
    (place / "t.yaml").write_text(TEMPLATE)
    (place / "waits.yaml").write_text(WAITS)
    return place


def test_templates_commands_and_jobs(local_cluster, folder, theirs):
    cluster = local_cluster(slots=2)
    texts: dict[str, str] = {}
    ask = functools.partial(walk, functools.partial(theirs, cluster, cwd=folder), texts=texts)
    ask(TEMPLATES)
    ask(COMMANDS)
    ended = lambda: cluster.get(f"commands/{texts['third']}")["command"]["state"] == "STATE_TERMINATED"  # noqa: E731
    wait_for(ended, 60, "the end of the command")
    ask(
        [
            ("cmd list", r"{third} .*TERMINATED"),
            ("template remove mine", r"Removed template mine"),
            ("cmd run -d --config resources.slots=0 echo some words", rf"^(?P<said>{ID})\n$"),
            ("task logs -f {said}", r"some words"),
            (
                "cmd logs {said}",
                r"\|\| some words\n(.*\n)*.*resources exited successfully with a zero exit code",
            ),
            ("task logs {said} --head 1 --json", r'"log"'),
        ]
    )
    assert "mine" not in theirs(cluster, "template", "list")
    # A prefix of an id stands for it, if it is that of one alone.
    texts["begin"] = texts["third"][:9]
    ask([("cmd logs {begin}", r"stream ended")])
    assert "partial UUID '0000' not found" in theirs(cluster, "cmd", "kill", "0000", status=1)


PRIORITIES = """
resource_pools:
  - pool_name: default
    scheduler: {type: priority, default_priority: 42}
"""
QUEUE = [
    ("cmd run -d --config resources.slots=1 sleep 600", rf"^(?P<first>{ID})\n$"),
    ("cmd run -d --config resources.slots=1 sleep 601", rf"^(?P<second>{ID})\n$"),
    ("cmd run -d --config resources.slots=1 sleep 602", rf"^(?P<third>{ID})\n$"),
    ("job list", r"# \| ID +\| Type +\| Job Name +\| +Priority +\| Submitted +\| Slots .* \| State +\| User"),
    ("job list", r"(?P<one>task-\d+) \| TYPE_COMMAND \| Command: sleep 601 +\| +42 .* 0/1 .*QUEUED"),
    ("job list", r"(?P<two>task-\d+) \| TYPE_COMMAND \| Command: sleep 602 +\| +42 .* 0/1 .*QUEUED"),
    ("job list", r"{one}(.*\n)+.*{two}"),
    ("job update {two} --ahead-of {one}", r""),
    ("job list", r"{two}(.*\n)+.*{one}"),
    ("job update {two} --behind-of {one}", r""),
    ("job list", r"{one}(.*\n)+.*{two}"),
    ("job update {two} --priority 9", r""),
    ("job list", r"{two} .* 9 \|(.*\n)+.*{one}"),
    ("job update-batch {one}.priority=8 {two}.priority=7", r""),
    ("job list --reverse", r"{one} .* 8 \|"),
    ("job list -p default", r"{two} .* 7 \|"),
]


def test_jobs_of_a_queue_by_priority(local_cluster, folder, theirs, tmp_path):
    pools = tmp_path / "pools.yaml"
    pools.write_text(PRIORITIES)
    cluster = local_cluster(slots=1, pools_file=str(pools))
    walk(functools.partial(theirs, cluster, cwd=folder), QUEUE, {})


HOSTS = [
    (
        "agent list",
        r"Agent ID +\| Version +\| Registered Time +\| +Slots \| +Containers \| Resource Pool +\| Enabled +"
        r"\| Draining +\| Addresses\n.*\n (?P<agent>\S+) .*\| +2 \| +0 \| default +\| True +\| False",
    ),
    ("agent list --json", r'"num_slots": 2'),
    ("agent list --csv", r"{agent},"),
    ("slot list", r"{agent} +\| default +\| +0 \| True +\| False +\| FREE +\| FREE +\| cpu"),
    ("slot list --csv", r"{agent},default,0,True,False,FREE"),
    ("agent disable --drain {agent}", r"No tasks in progress on draining nodes"),
    ("agent list", r"{agent} .*\| False +\| True"),
    ("slot list", r"{agent} +\| default +\| +1 \| False +\| True"),
    ("agent enable {agent}", r""),
    ("slot disable {agent} 0", r""),
    ("slot list", r"{agent} +\| default +\| +0 \| False +\| False(.*\n)+.* 1 \| True"),
    ("slot enable {agent} 0", r""),
    ("agent disable --all", r""),
    ("agent list", r"{agent} .*\| False +\| False"),
    ("agent enable --all", r""),
    ("agent list", r"{agent} .*\| True +\| False"),
]
PEOPLE = [
    ("user create ann", r""),
    (
        "user list",
        r"User Id \| Username +\| Admin +\| Active +\| Remote .*\n(.*\n)+.*ann +\| False +\| True",
    ),
    ("user link-with-agent-user ann --agent-uid 7 --agent-user a --agent-gid 8 --agent-group b", r""),
    ("user list", r"ann .*\| 7 +\| 8 +\| a +\| b"),
    ("user deactivate ann", r""),
    ("user list", r"admin(.*\n)+"),
    ("user activate ann", r""),
    ("user rename ann anna", r""),
    ("user list", r"anna +\| False +\| True"),
    ("user whoami", r"You are logged in as user 'admin'"),
]
ROOMS = [
    ("workspace create W", r"ID \| Name +\| +# Projects .*Checkpoint Storage Config\n.*\n +2 \| W "),
    ("workspace list", r"1 \| Uncategorized(.*\n)+ +2 \| W "),
    ("workspace describe W", r"Associated Projects"),
    (
        "workspace edit W --name V --agent-uid 7 --agent-user a --agent-gid 8 --agent-group b",
        r"2 \| V .* 7 \| +8 \| a ",
    ),
    ("project create V p --description words", r"2 \| p +\| words"),
    (
        "project list V",
        r"ID \| Name +\| Description +\| +# Experiments \| +# Active Experiments\n.*\n +2 \| p",
    ),
    ("project describe V p", r"Associated Experiments"),
    ("project edit V p --new_name q", r"2 \| q "),
    ("project list-experiments V q", r"ID +\| Owner +\| Name +\| Parent ID +\| State"),
    ("workspace list-projects V", r"2 \| q "),
    ("project archive V q", r"Successfully archived project q"),
    ("project unarchive V q", r"Successfully un-archived project q"),
    ("workspace archive V", r"Successfully archived workspace V"),
    ("workspace unarchive V", r"Successfully un-archived workspace V"),
    ("workspace list --json", r'"name": "V"'),
]


def test_hosts_people_and_rooms(local_cluster, folder, theirs):
    cluster = local_cluster(slots=2)
    admin = functools.partial(theirs, cluster, cwd=folder, user="admin")
    texts: dict[str, str] = {}
    walk(admin, HOSTS, texts)
    for refused in (
        ("agent", "disable", texts["agent"]),
        ("slot", "disable", texts["agent"], "0"),
        ("user", "create", "eve"),
    ):
        assert "Forbidden(" in theirs(cluster, *refused, status=1), refused
    walk(admin, PEOPLE, texts)
    assert "anna" in theirs(cluster, "user", "whoami", user="anna")
    admin("user", "deactivate", "anna")
    theirs(cluster, "user", "whoami", user="anna", status=1)
    walk(admin, ROOMS, texts)
    theirs(cluster, "e", "create", "waits.yaml", ".", "--paused", cwd=folder)
    moved = [
        ("e move 1 V q", r"Moved experiment 1 to project \"q\""),
        ("project list-experiments V q --all", r" 1 +\| determined +\| waits "),
        ("e kill 1", r"Killed experiment 1"),
        ("workspace archive V", r"archived workspace V"),
    ]
    walk(admin, moved, texts)
    assert "archived" in admin("project", "create", "V", "r", status=1)
    walk(admin, [("workspace unarchive V", r""), ("workspace create X", r" X ")], texts)
    walk(admin, [("workspace delete X --yes", r"Successfully deleted workspace X")], texts)
    assert "not found" in admin("workspace", "describe", "X", status=1)


MODELS = [
    ("e lc 1 --csv", rf"COMPLETED[^\n]*?(?P<uuid>{ID})"),
    (
        "checkpoint describe {uuid}",
        r"Experiment ID +\| +Trial ID +\| +Steps Completed +\| Report Time(.*\n)+.*{uuid}",
    ),
    ("model create digits", r"1 \| digits "),
    ("model list", r"1 \| digits "),
    ("model register-version digits {uuid}", r"{uuid}"),
    (
        "model list-versions digits",
        r"Version # \| +Trial ID \| +Batch # \| Checkpoint UUID(.*\n)+ +1 \| +1 \| .*{uuid}",
    ),
    ("model describe digits --json", r'"name": "digits"'),
    ("workspace create W", r" W "),
    ("model move digits -w W", r""),
    ("model list -w W", r"digits"),
    ("t support-bundle 1", r"bundle"),
    ("t kill 2", r"Killed trial 2"),
]


def test_checkpoints_models_and_trials(local_cluster, folder, theirs):
    cluster = local_cluster(slots=1)
    ask = functools.partial(theirs, cluster, cwd=folder)
    ask("e", "create", "2_checkpoints.yaml", ".", "-f")
    ask("e", "create", "waits.yaml", ".")
    texts: dict[str, str] = {}
    walk(ask, MODELS, texts)
    # What a model has is not deleted.
    assert texts["uuid"] in ask("model", "describe", "digits")
    for verb in (["rm", texts["uuid"], "--glob", "state"], ["delete", texts["uuid"]]):
        assert "version of model 'digits'" in ask("checkpoint", *verb, "--yes", status=1)
    wait_for(lambda: cluster.experiment(2)["state"] in TERMINAL, 60, "the end of the killed trial")


def shown(cluster, printed, headers):
    """The page behind a link that the command prints."""
    (link,) = re.findall(r"running at: (\S+)", printed)
    assert requests.get(link, timeout=60, headers={"Accept": "text/html"}).url != link
    return requests.get(link, timeout=60, headers=headers)


LAB = [
    ("notebook start --preview --config description=mine", r"description: mine\nentrypoint:\n"),
    ("notebook start -d --config resources.slots=1 --config description=mine", rf"^(?P<lab>{ID})\n$"),
    (
        "notebook list",
        r"id +\| username +\| description +\| state +\| exitStatus .*\n.*\n {lab} \| determined \| mine ",
    ),
    ("notebook list -q", r"^{lab}\n$"),
    ("notebook list --json", r'"id": "{lab}"'),
    ("notebook config {lab}", r"resource_pool: default\n  slots: 1"),
    ("notebook set priority {lab} 40", r"Set priority of notebook {lab} to 40"),
    ("job list", r"TYPE_NOTEBOOK +\| mine "),
    ("task list", r"{lab}"),
    ("shell start -d --config resources.slots=1 --config description=mine", rf"^(?P<shell>{ID})\n$"),
    ("shell list", r"id +\| username +\| description +\| state .*\n.*\n {shell} \| determined \| mine "),
    ("shell list -q", r"^{shell}\n$"),
    ("shell list --json", r'"publicKey": "ssh-'),
    ("shell config {shell}", r"slots: 1"),
    ("shell set priority {shell} 40", r"Set priority of shell {shell} to 40"),
    ("shell kill {shell}", r"Killed shell {shell}"),
    ("notebook kill {lab}", r"Killed notebook {lab}"),
    ("tensorboard start 1 -d", rf"^(?P<board>{ID})\n$"),
    ("tensorboard list", r"{board} \| determined \| .*\[1\] +\| \[\] "),
    ("tensorboard config {board}", r"resource_pool: default"),
    ("tensorboard set priority {board} 40", r"Set priority of tensorboard {board} to 40"),
    ("tensorboard kill {board}", r"Killed tensorboard {board}"),
]


def test_notebooks_shells_and_tensorboards(local_cluster, folder, theirs):
    cluster = local_cluster(slots=1)
    ask = functools.partial(theirs, cluster, cwd=folder)
    # It holds the only slot: the notebook and the shell wait, and do not end while the rows are tried.
    ask("e", "create", "waits.yaml", ".")
    texts: dict[str, str] = {}
    walk(ask, LAB, texts)
    for kind, name in (("notebook", "lab"), ("shell", "shell"), ("tensorboard", "board")):
        there = f"{kind}s/{texts[name]}"
        over = lambda there=there, kind=kind: cluster.get(there)[kind]["state"] == "STATE_TERMINATED"  # noqa: E731
        wait_for(over, 60, f"the end of the {kind}")
        assert re.search(rf"{texts[name]}.* TERMINATED", ask(kind, "list"))
        assert "stream ended" in ask(kind, "logs", texts[name])
    cluster.get("me")
    headers = {"Authorization": f"Bearer {cluster._token}"}
    if importlib.util.find_spec("jupyterlab"):
        printed = ask("notebook", "start", "--no-browser", "--config", "resources.slots=0")
        assert "is ready." in printed
        assert "JupyterLab" in shown(cluster, printed, headers).text
    if importlib.util.find_spec("tensorboard"):
        printed = ask("tensorboard", "start", "1", "--no-browser")
        assert "TensorBoard" in shown(cluster, printed, headers).text


SSH = [
    name
    for name in ("ssh", "ssh-keygen", "sshd")
    if shutil.which(name, path="/usr/sbin:/usr/bin:/bin") is None
]


@pytest.mark.skipif(bool(SSH), reason=f"this host has no {', '.join(SSH)}")
def test_a_shell_is_entered(local_cluster, folder, theirs):
    cluster = local_cluster(slots=1)
    ask = functools.partial(theirs, cluster, cwd=folder)
    texts: dict[str, str] = {}
    walk(
        ask,
        [
            ("shell start -d --config resources.slots=0", rf"^(?P<shell>{ID})\n$"),
            ("shell open {shell} echo $DET_TASK_TYPE", r"SHELL"),
            ("shell show_ssh_command {shell}", r"ssh .*ProxyCommand"),
        ],
        texts,
    )
