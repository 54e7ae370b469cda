/** Several experiments and trials side by side; the address says which: `?e=1,2&t=7`. */

import { Link2, Plus } from "lucide-react";
import { type FormEvent, useMemo, useState } from "react";
import { Link } from "react-router";

import { Board } from "../charts/board";
import { useChoice } from "../charts/chosen";
import { writeChosen } from "../charts/colours";
import { type Difference, differences } from "../charts/differences";
import { useLink } from "../charts/link";
import { type Looks, looksOf } from "../charts/looks";
import { useCurves } from "../charts/metric";
import { useNames } from "../charts/names";
import { TrialList } from "../charts/trials";
import { Button } from "../ui/button";
import { Card } from "../ui/card";
import { Dialog, DialogFoot } from "../ui/dialog";
import { NumberField, TextField } from "../ui/field";
import { PageHead, usePlace } from "../ui/page";
import { Empty, Failure, Loaded, Loading } from "../ui/status";
import { Views } from "../ui/tabs";
import { failed, toast } from "../ui/toast";
import { coloursOf, type Found, rankedOf, useCompared } from "./comparing/compared";
import { Coordinates } from "./comparing/coordinates";
import { Details } from "./comparing/details";
import { waysOf } from "./experiment/listed";
import { many } from "../parts/format";

/** How many of each experiment's best trials are shown, unless the user asks for more. */
const EACH = 3;
const ids = (text: string | null) => [
  ...new Set(
    (text ?? "")
      .split(",")
      .map(Number)
      .filter((id) => Number.isInteger(id) && id > 0),
  ),
];

export function Compare() {
  const { params, set } = useLink();
  const [experiments, trials] = [ids(params.get("e")), ids(params.get("t"))];
  const each = Number(params.get("n")) || EACH;
  const view = params.get("v") ?? "";
  const compared = useCompared(experiments, trials, each);
  const [adding, setAdding] = useState(false);
  usePlace({ crumbs: [{ name: "Experiments", to: "/experiments" }, { name: "Compare" }], title: "Compare" });
  const nothing = !experiments.length && !trials.length;
  const differ = useMemo(() => differences(compared.experiments, compared.trials), [compared.experiments, compared.trials]);
  const count = nothing ? "" : `${many(compared.trials.length, "trial")} of ${many(compared.experiments.length, "experiment")}`;
  return (
    <>
      <PageHead
        title="Compare"
        beside={count}
        actions={
          <>
            {!nothing && (
              <Button icon={<Link2 />} onClick={() => void copyHere()}>
                Copy link
              </Button>
            )}
            <Button kind="primary" icon={<Plus />} onClick={() => setAdding(true)}>
              Add trials
            </Button>
          </>
        }
      />
      {compared.errors.map((error, at) => (
        <Failure key={at} error={error} />
      ))}
      {nothing ? (
        <Card>
          <Empty title="Nothing to compare yet">
            Choose experiments in the <Link to="/experiments">list</Link>, or trials of an experiment, and compare them here.
          </Empty>
        </Card>
      ) : (
        <>
          <Views
            name="Views"
            value={view}
            views={[
              { id: "", name: "Charts" },
              { id: "details", name: "Differences", count: differ.filter((row) => row.differs).length },
              { id: "parallel", name: "Parallel coordinates" },
            ]}
            onChange={(v) => set({ v })}
          />
          {compared.pending ? <Loading shape="chart" /> : <View view={view} compared={compared} rows={differ} />}
        </>
      )}
      {adding && (
        <Add
          each={experiments.length ? each : null}
          onAdd={(more, each) => set({ t: [...new Set([...trials, ...more])].join(","), n: each === EACH ? "" : String(each) })}
          onClose={() => setAdding(false)}
        />
      )}
    </>
  );
}

async function copyHere() {
  try {
    await navigator.clipboard.writeText(location.href);
    toast({ text: "Link copied. It includes the trials, colours and charts." });
  } catch (error) {
    failed(error, "The link could not be copied");
  }
}

function Add({ each, onAdd, onClose }: { each: number | null; onAdd: (trials: number[], each: number) => void; onClose: () => void }) {
  const [text, setText] = useState("");
  const [most, setMost] = useState(String(each ?? EACH));
  const given = text.split(/[\s,]+/).filter(Boolean);
  const wrong = given.find((id) => !/^[1-9]\d*$/.test(id));
  const add = (event: FormEvent) => {
    event.preventDefault();
    if (wrong || (!given.length && each === null)) return;
    onAdd(given.map(Number), Math.max(1, Number(most) || EACH));
    onClose();
  };
  return (
    <Dialog title="Add trials" onClose={onClose}>
      <form className="form" onSubmit={add}>
        <TextField
          label="Ids of trials"
          value={text}
          onChange={setText}
          placeholder="164, 171"
          hint="From any experiment, separated by commas."
          error={wrong ? `${wrong} is not a trial ID.` : ""}
        />
        {each !== null && <NumberField label="Best trials of each experiment" min={1} max={1000} value={most} onChange={setMost} />}
        <DialogFoot onClose={onClose}>Add</DialogFoot>
      </form>
    </Dialog>
  );
}

function View({ view, compared, rows }: { view: string; compared: Found; rows: Difference[] }) {
  const { experiments, trials } = compared;
  if (!trials.length)
    return (
      <Card>
        <Empty title="None of these has any trials yet">They appear when the search creates them.</Empty>
      </Card>
    );
  if (view === "details") return <Details trials={trials} rows={rows} looks={NO_LOOKS} all />;
  if (view === "parallel") return <Coordinates experiments={experiments} trials={trials} />;
  return <Curves compared={compared} rows={rows} />;
}
const NO_LOOKS: Looks = new Map();

function Curves({ compared, rows }: { compared: Found; rows: Difference[] }) {
  const { experiments, trials } = compared;
  const { params } = useLink();
  const above = useMemo(() => new Map(experiments.map((experiment) => [experiment.id, experiment])), [experiments]);
  const { metric, smaller, trials: inOrder } = rankedOf(compared);
  const made = inOrder.map((trial) => ({ ...trial, of: `${trial.experimentId} ${above.get(trial.experimentId)?.name ?? ""}` }));
  const key = JSON.stringify(made);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the result depends on the serialized content alone
  const all = useMemo(() => made, [key]);
  const ranked = useMemo(() => all.map((trial) => trial.id), [all]);
  const colours = coloursOf(compared, ranked);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the result depends on the written content alone
  const byDefault = useMemo(() => colours, [writeChosen(colours)]);
  const choice = useChoice(byDefault);
  const [by, together] = [params.get("cb") ?? "", params.get("gb") ?? ""];
  const looks = useMemo(() => looksOf(all, { by, chosen: choice.chosen, smaller }), [all, by, choice.chosen, smaller]);
  const groups = useMemo(
    () => (together ? looksOf(all, { by: together, chosen: choice.chosen, smaller }) : null),
    [all, together, choice.chosen, smaller],
  );
  const curves = useCurves(trials, (trial) => ({ label: `${trial.experimentId} / ${trial.id}` }));
  const of = experiments.map((experiment) => experiment.id);
  const topics = of.map((id) => `experiment.${id}.series`);
  const names = useNames(of, topics);
  return (
    <div className="with-list compared">
      <TrialList
        trials={all}
        metric={metric}
        choice={choice}
        looks={looks}
        foot={<span className="ink3 xs">Colours stay with the trial on every page. 7 to 12 are dashed.</span>}
      />
      <div className="stack">
        <Loaded answer={names} shape="chart">
          {(names) => (
            <Board
              flat
              trials={curves}
              names={names}
              searched={metric}
              smaller={smaller}
              topics={topics}
              looks={looks}
              hidden={choice.hidden}
              together={groups}
              ways={waysOf(all, metric)}
            />
          )}
        </Loaded>
        <Details trials={trials} rows={rows} looks={looks} />
      </div>
    </div>
  );
}
