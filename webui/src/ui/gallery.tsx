/** Every state of the shared components, for developers. */

import { Box, FlaskConical, GitFork, Pause, Play, SlidersHorizontal, Trash2 } from "lucide-react";
import { useState } from "react";

import { Button, IconButton, Segments } from "./button";
import { Card, Facts, Note } from "./card";
import { ask, Dialog, DialogFoot } from "./dialog";
import { Check, NumberField, Search, Select, Slider, Switch, TextField } from "./field";
import { Figure, Figures } from "./figures";
import { Menu, Popover } from "./menu";
import { Bars, Meter, Progress } from "./meter";
import { PageHead, usePlace } from "./page";
import { Spark } from "./spark";
import { State } from "./state";
import { Empty, Failure, Loading } from "./status";
import { Avatar, Chip, Copyable, Keys, Swatch, Tag } from "./text";
import { toast } from "./toast";

const STATES = ["RUNNING", "COMPLETED", "ERROR", "PAUSED", "QUEUED", "CANCELED", "STOPPED_EARLY", "STARTING", "DELETED"];
const VALUES = [3, 5, 4, 7, 8, 8, 9, 11, 10, 12];
const TWELVE = Array.from({ length: 12 }, (_, at) => at + 1);

export function Gallery() {
  usePlace({ crumbs: [{ name: "Components" }] });
  return (
    <>
      <PageHead title="Components" beside="every state of the parts that pages share" />
      <Figures>
        <Figure name="Slots in use" value={61} unit="of 64" note="node-7 drains: 2 slots">
          <Bars values={VALUES} title="Slots in use, 10 days" />
        </Figure>
        <Figure name="Running" value={5} unit="experiments" note="9 trials">
          <Meter
            label="Shares of projects"
            parts={[
              { share: 0.5, colour: "var(--s1)" },
              { share: 0.2, colour: "var(--s2)" },
            ]}
          />
        </Figure>
        <Figure name="Best" value="0.9736" unit="accuracy">
          <Spark values={VALUES} title="accuracy" state="RUNNING" width={150} height={30} />
        </Figure>
        <Figure name="Failed" value={2} unit="trials" bad note="both at train.py 41" />
      </Figures>
      <div className="cols">
        <div className="stack">
          <Buttons />
          <Card title="States: icon, word, colour">
            <div className="chips">
              {STATES.map((state) => (
                <State key={state} state={state} pill />
              ))}
            </div>
            <div className="chips" style={{ marginTop: 10 }}>
              {STATES.map((state) => (
                <State key={state} state={state} />
              ))}
            </div>
          </Card>
          <Overlays />
          <Card title="Series 1 to 12">
            <div className="chips">
              {TWELVE.map((at) => (
                <span key={at} className="nowrap sm">
                  <Swatch colour={`var(--s${at})`} /> {at}
                </span>
              ))}
            </div>
            <div style={{ height: 8, borderRadius: 4, background: "var(--ramp)", marginTop: 12 }} />
          </Card>
        </div>
        <div className="stack">
          <Fields />
          <Card title="Empty, loading, error, stale">
            <div className="stack">
              <Empty
                icon={<FlaskConical className="l" />}
                title="No experiments in this project yet"
                command="det e create config.yaml . --project_id 4"
              >
                They appear here as soon as one is submitted.
              </Empty>
              <Loading />
              <Failure error={new Error("The gateway answered after 30 s with “busy”")} again={() => undefined} />
              <Note kind="warn">
                <b className="b">Data of 14:02:31, 41 s old.</b> The read side is behind by 1,204 events and catching up.
              </Note>
              <Note kind="info">Whatever is worth knowing.</Note>
            </div>
          </Card>
          <Card title="Facts">
            <Facts
              facts={[
                ["Searcher", "adaptive_asha"],
                ["Command", <Copyable key="c" text="det e describe 121" />],
                ["By", <Avatar key="a" name="Mara Keller" />],
                ["Key", <Keys key="k" keys="G Q" />],
              ]}
            />
          </Card>
        </div>
      </div>
    </>
  );
}

function Buttons() {
  const [scale, setScale] = useState<"linear" | "log">("linear");
  return (
    <Card title="Buttons, switches, chips">
      <div className="toolbar">
        <Button kind="primary" icon={<Pause />} keys="P" tip="Pause">
          Pause
        </Button>
        <Button icon={<GitFork />}>Fork</Button>
        <Button kind="ghost" icon={<SlidersHorizontal />}>
          Options
        </Button>
        <Button kind="danger" icon={<Trash2 />}>
          Delete
        </Button>
        <Button not="It has ended">Not now</Button>
        <IconButton icon={<Play />} label="Play" />
        <Segments
          name="Scale"
          value={scale}
          options={[
            ["linear", "Linear"],
            ["log", "Log"],
          ]}
          onChange={setScale}
        />
        <Chip onRemove={() => undefined} onClick={() => undefined}>
          tag: sweep
        </Chip>
        <Tag>vit</Tag>
        <Tag kind="best">best</Tag>
        <Progress value={0.62} />
      </div>
    </Card>
  );
}

function Overlays() {
  const [open, setOpen] = useState(false);
  const remove = () =>
    void ask({
      title: "Delete vit-small sweep?",
      text: (
        <>
          This deletes experiment 109 with its 40 trials, their logs and <b>22 checkpoints, 41.8 GB</b>.
        </>
      ),
      verb: "Delete experiment",
      danger: true,
      icon: <Trash2 />,
      typed: "vit-small sweep",
    });
  return (
    <Card title="What opens">
      <div className="toolbar">
        <Menu
          label="More"
          items={[
            { name: "Fork", icon: <GitFork />, keys: "F" },
            { name: "Search from here", icon: <FlaskConical /> },
            null,
            { name: "Archive", icon: <Box />, not: "still running" },
            { name: "Delete", icon: <Trash2 />, danger: true, act: remove },
          ]}
        />
        <Popover label="Options" text="Options" icon={<SlidersHorizontal />}>
          <Check label="Clip outliers" />
        </Popover>
        <Button onClick={remove}>Delete with its name</Button>
        <Button onClick={() => setOpen(true)}>A form</Button>
        <Button onClick={() => toast({ text: "Paused vit-small sweep v2", undo: () => undefined })}>Toast</Button>
        <Button onClick={() => toast({ kind: "error", text: "Paused 2 of 19. 17 have ended already.", action: { name: "Show them" } })}>
          Error toast
        </Button>
      </div>
      {open && (
        <Dialog
          title="Continue trial 97"
          text="A new experiment starts from its latest checkpoint, 120k batches."
          onClose={() => setOpen(false)}
        >
          <form
            onSubmit={(event) => {
              event.preventDefault();
              setOpen(false);
            }}
          >
            <NumberField label="Train until" defaultValue="100000" error="It has already reached 120,000. Enter more than that." />
            <DialogFoot onClose={() => setOpen(false)} icon={<Play />}>
              Continue trial
            </DialogFoot>
          </form>
        </Dialog>
      )}
    </Card>
  );
}

function Fields() {
  const [text, setText] = useState("");
  const [on, setOn] = useState(true);
  const [level, setLevel] = useState(0.6);
  return (
    <Card title="Fields">
      <div className="form">
        <TextField label="Name" hint="Shown in every list." value={text} onChange={setText} />
        <TextField label="Pool" defaultValue="gpu" error="There is no pool gpu. The nearest is gpus." />
        <div className="toolbar">
          <Search label="Search trials" value={text} onChange={setText} />
          <Select
            label="Level"
            value="ERROR"
            options={[
              ["ERROR", "Error"],
              ["INFO", "Info"],
            ]}
            onChange={() => undefined}
          />
        </div>
        <Check label="Include archived" checked={on} onChange={setOn} />
        <Switch label="Single-key shortcuts" checked={on} onChange={setOn} hint="Ctrl K works all the same." />
        <Slider label="Smoothing" value={level} min={0} max={1} step={0.05} onChange={setLevel} />
      </div>
    </Card>
  );
}
