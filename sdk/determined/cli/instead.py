"""Words that people try as commands of `det`, and the commands that do it."""

from __future__ import annotations

_ENDS = "det experiment cancel ID, which lets trials save checkpoints, or det experiment kill ID"
_CONTINUES = (
    "det experiment activate ID if it is paused; to start from a trial's checkpoint: "
    "det experiment create CONFIG DIR --config searcher.source_trial_id=TRIAL_ID"
)
_FORKS = (
    "det experiment config ID and det experiment download-model-def ID, then det experiment create CONFIG DIR"
)
_UP, _DOWN = "det deploy local cluster-up", "det deploy local cluster-down"
_LISTS = "det experiment list-trials ID"
_CHECKPOINTS = "det experiment list-checkpoints ID"
_JOBS = "det job list"

WORDS: dict[str, dict[str, str]] = {
    "det": {
        "cluster start up init serve": _UP,
        "down stop": _DOWN,
        "status health": "det deploy local status, or det master info",
        "login signin": "det user login USER",
        "logout signout": "det user logout",
        "ls list": "det experiment list",
        "run submit create": "det experiment create CONFIG DIR",
        "log logs tail": "det trial logs TRIAL_ID, or det experiment logs ID for its first trial",
        "queue ps top jobs": _JOBS,
        "gpu gpus slots": "det slot list",
        "node nodes worker workers": "det agent list",
        "tb": "det tensorboard start ID",
        "nb jupyter": "det notebook start",
        "disk du": "det experiment list --all --disk",
        "exec ssh": "det shell start",
    },
    "det experiment": {
        "continue resume restart retry rerun": _CONTINUES,
        "unpause": "det experiment activate ID",
        "stop terminate abort": _ENDS,
        "run submit start new": "det experiment create CONFIG DIR",
        "show status info get": "det experiment describe ID",
        "metrics": "det trial metrics TRIAL_ID",
        "rm remove": "det experiment delete ID",
        "fork clone copy": _FORKS,
        "tail follow": "det experiment logs ID --follow",
        "trials": _LISTS,
        "checkpoint checkpoints download-checkpoint": f"{_CHECKPOINTS}, or det experiment download ID",
        "tensorboard tb": "det tensorboard start ID",
        "why explain": "det why experiment ID",
        "rename": "det experiment set name ID NAME",
    },
    "det trial": {
        "list ls": _LISTS,
        "continue resume restart": _CONTINUES,
        "pause activate cancel": "the same command of its experiment, det experiment pause ID",
        "stop": "det trial kill TRIAL_ID",
        "show status info get": "det trial describe TRIAL_ID",
        "tail follow": "det trial logs TRIAL_ID --follow",
        "checkpoint checkpoints": _CHECKPOINTS,
        "why explain": "det why trial TRIAL_ID",
    },
    "det checkpoint": {"list ls": _CHECKPOINTS},
    "det job": {"cancel stop kill": _ENDS},
    "det notebook": {"create run new": "det notebook start", "stop": "det notebook kill ID"},
    "det shell": {"create run new": "det shell start", "stop": "det shell kill ID"},
    "det tensorboard": {"create run new": "det tensorboard start ID", "stop": "det tensorboard kill ID"},
    "det command": {"start create": "det command run WORDS", "stop": "det command kill ID"},
    "det user": {"add": "det user create NAME", "remove delete rm": "det user deactivate NAME"},
    "det deploy": {"up start": _UP, "down stop": _DOWN},
    "det deploy local": {"up start": _UP, "down stop": _DOWN},
}


def command_for(path: str, word: str) -> str:
    """Return what does what somebody means by a word after a path such as `det trial`; empty if unknown."""
    for words, command in WORDS.get(path, {}).items():
        if word in words.split():
            return command
    return ""
