import { ArrowDownToLine, Box, Check as Tick, Layers, Lock, Trash2 } from "lucide-react";
import { useMemo, useState } from "react";
import { Link, useSearchParams } from "react-router";

import { useChange, useData } from "../../api/data";
import { ANYWHERE, useRights } from "../../api/rights";
import type { Checkpoint, Experiment } from "../../api/types";
import { number, size } from "../../parts/format";
import { Button, IconButton, LinkButton, Segments } from "../../ui/button";
import { ask } from "../../ui/dialog";
import { useOpen } from "../../ui/drawer";
import { Search } from "../../ui/field";
import { useNarrow } from "../../ui/media";
import { Empty, Failure, Loaded } from "../../ui/status";
import { type Column, Table } from "../../ui/table";
import { NUMBER_PX } from "../../ui/table/widths";
import { Tag, Time } from "../../ui/text";
import { CheckpointDrawer, Metadata, Register } from "./checkpoint";
import "./checkpoints.css";
import { isSmaller } from "./listed";
import { metricAt } from "./metric_at";
import { bytesOf, isThere, type Policy, PolicyCard, policyOf, reasons, useGoing } from "./policy";

type View = "stored" | "going" | "deleted";
const CHOSEN_MOST = 6;

/** The checkpoints of an experiment or a trial; for an experiment also what is kept, and why. */
export function Checkpoints({
  of,
  topics,
  experiment,
  owned = experiment,
}: {
  of: string;
  topics: string[];
  experiment?: Experiment;
  /** The experiment whose owner may delete them. */
  owned?: Experiment;
}) {
  const rights = useRights();
  const narrow = useNarrow();
  const undeletable = owned && rights("delete", owned);
  const [params, setParams] = useSearchParams();
  const [open, setOpen] = useOpen();
  const answer = useData<{ checkpoints: Checkpoint[] }>(`${of}/checkpoints?sortBy=SORT_BY_END_TIME&orderBy=ORDER_BY_DESC`, topics);
  const registered = useRegistered();
  const [tried, setTried] = useState<Policy | null>(null);
  const [chosen, setChosen] = useState<ReadonlySet<string | number>>(new Set());
  const [comparing, setComparing] = useState(false);
  const [registering, setRegistering] = useState<string | null>(null);
  const policy = experiment ? (tried ?? policyOf(experiment)) : null;
  const { going, error } = useGoing(experiment, policy, topics);
  const change = useChange();
  const view = (params.get("view") ?? "stored") as View;
  const wanted = params.get("find") ?? "";
  const set = (name: string, value: string) =>
    setParams(
      (before) => {
        if (value) before.set(name, value);
        else before.delete(name);
        return before;
      },
      { replace: true },
    );
  const everything = answer.data?.checkpoints ?? [];
  const why = useMemo(
    () => (experiment && policy ? reasons(everything.filter(isThere), experiment, policy, registered) : null),
    [everything, experiment, policy, registered],
  );
  const marks = useMemo(() => marksOf(everything, experiment), [everything, experiment]);
  const lists: Record<View, Checkpoint[]> = {
    stored: everything.filter(isThere),
    going: everything.filter((checkpoint) => isThere(checkpoint) && going.has(checkpoint.uuid)),
    deleted: everything.filter((checkpoint) => !isThere(checkpoint)),
  };
  const rows = bestFirst(lists[view], experiment).filter((checkpoint) => fits(checkpoint, wanted));
  const remove = async (some: Checkpoint[]) => {
    const sum = size(some.reduce((total, checkpoint) => total + bytesOf(checkpoint), 0));
    const what = some.length === 1 ? `checkpoint ${some[0]!.uuid.slice(0, 8)}` : `${some.length} checkpoints`;
    if (
      await ask({
        title: `Delete ${what}?`,
        text: `${sum} are permanently deleted. Metrics are kept.`,
        verb: `Delete ${what}`,
        danger: true,
      })
    )
      change.mutate({ method: "DELETE", path: "checkpoints", body: { checkpointUuids: some.map((checkpoint) => checkpoint.uuid) } });
  };
  const opened = everything.find((checkpoint) => checkpoint.uuid === open);
  const step = (by: number) => {
    const next = rows[rows.findIndex((row) => row.uuid === open) + by];
    if (next) setOpen(next.uuid);
  };
  const columns = columnsOf({ experiment, marks, registered, why, going, onOpen: setOpen });
  return (
    <>
      {experiment && policy && everything.length > 0 && (
        <PolicyCard
          experiment={experiment}
          checkpoints={everything}
          tried={policy}
          onTry={setTried}
          going={going}
          registered={registered}
        />
      )}
      {error ? <Failure error={error} /> : null}
      {change.error ? <Failure error={change.error} /> : null}
      <Loaded answer={answer}>
        {() =>
          everything.length ? (
            <>
              <div className="toolbar">
                <Segments
                  small
                  name="Which checkpoints"
                  value={view}
                  options={[
                    ["stored", `Stored ${lists.stored.length}`],
                    ...(experiment ? ([["going", `Would go ${lists.going.length}`]] as const) : []),
                    ["deleted", `Deleted ${lists.deleted.length}`],
                  ]}
                  onChange={(next) => set("view", next === "stored" ? "" : next)}
                />
                <Search
                  small
                  label="Find checkpoints"
                  placeholder="trial:164 or part of an id"
                  value={wanted}
                  onChange={(text) => set("find", text)}
                />
                <span className="sp" />
                <Button
                  small
                  icon={<Layers />}
                  not={chosen.size > 1 && chosen.size <= CHOSEN_MOST ? undefined : `Choose 2 to ${CHOSEN_MOST} of them`}
                  count={chosen.size}
                  onClick={() => setComparing(true)}
                >
                  Compare metadata
                </Button>
                {chosen.size > 0 && (
                  <Button
                    small
                    icon={<Trash2 />}
                    not={undeletable}
                    onClick={() => void remove(everything.filter((checkpoint) => chosen.has(checkpoint.uuid) && isThere(checkpoint)))}
                  >
                    Delete {chosen.size}
                  </Button>
                )}
              </div>
              <Table
                name="Checkpoints"
                store="checkpoints"
                rows={rows}
                id={(checkpoint) => checkpoint.uuid}
                columns={columns}
                selected={chosen}
                onSelect={setChosen}
                open={open}
                onOpen={(checkpoint) => setOpen(checkpoint.uuid)}
                called={(checkpoint) => `checkpoint ${checkpoint.uuid.slice(0, 8)}`}
                actWidth={narrow ? undefined : 110}
                act={(checkpoint) =>
                  isThere(checkpoint) &&
                  !narrow && (
                    <>
                      <LinkButton small kind="ghost" icon={<ArrowDownToLine />} label="Download" href={`/checkpoints/${checkpoint.uuid}`} />
                      <IconButton
                        icon={<Box />}
                        label="Register as a model"
                        not={rights("edit", ANYWHERE)}
                        onClick={() => setRegistering(checkpoint.uuid)}
                      />
                    </>
                  )
                }
                actions={(checkpoint) => [
                  { name: "Open", act: () => setOpen(checkpoint.uuid) },
                  {
                    name: "Download",
                    icon: <ArrowDownToLine />,
                    not: isThere(checkpoint) ? undefined : "its files are gone",
                    act: () => location.assign(`/checkpoints/${checkpoint.uuid}`),
                  },
                  {
                    name: "Register as a model",
                    icon: <Box />,
                    not: isThere(checkpoint) ? rights("edit", ANYWHERE) : "its files are gone",
                    act: () => setRegistering(checkpoint.uuid),
                  },
                  { name: "Copy id", act: () => void navigator.clipboard?.writeText(checkpoint.uuid) },
                  null,
                  {
                    name: "Delete",
                    icon: <Trash2 />,
                    danger: true,
                    not: isThere(checkpoint) ? undeletable : "its files are gone",
                    act: () => void remove([checkpoint]),
                  },
                ]}
                empty={view === "deleted" ? "None was deleted." : view === "going" ? "None would go." : "None match."}
              />
            </>
          ) : (
            <Empty
              title="No checkpoints yet"
              command='with core_context.checkpoint.store_path({"steps_completed": steps}) as (path, uuid): ...'
            >
              Scripts store checkpoints with core_context.checkpoint.
            </Empty>
          )
        }
      </Loaded>
      {opened && (
        <CheckpointDrawer
          checkpoint={opened}
          metric={experiment?.searcherMetric ?? ""}
          why={going.has(opened.uuid) ? "It will go." : why?.get(opened.uuid)}
          onClose={() => setOpen(null)}
          onStep={step}
          onRegister={() => setRegistering(opened.uuid)}
          undeletable={undeletable}
          onDelete={() => void remove([opened])}
        />
      )}
      {registering && <Register uuid={registering} onClose={() => setRegistering(null)} />}
      {comparing && <Metadata some={everything.filter((checkpoint) => chosen.has(checkpoint.uuid))} onClose={() => setComparing(false)} />}
    </>
  );
}

/** Matches `trial:164`, part of an id, or both. */
function fits(checkpoint: Checkpoint, wanted: string): boolean {
  return wanted
    .trim()
    .split(/\s+/)
    .filter(Boolean)
    .every((word) =>
      word.startsWith("trial:") ? String(checkpoint.training?.trialId) === word.slice(6) : checkpoint.uuid.includes(word.toLowerCase()),
    );
}

interface Telling {
  experiment?: Experiment;
  marks: Map<string, string>;
  registered: Set<string>;
  why: Map<string, string> | null;
  going: Set<string>;
  onOpen: (uuid: string) => void;
}

function columnsOf({ experiment, marks, registered, why, going, onOpen }: Telling): Column<Checkpoint>[] {
  const base: Column<Checkpoint>[] = [
    {
      id: "uuid",
      head: "Checkpoint",
      name: true,
      value: (checkpoint) => checkpoint.uuid,
      title: (checkpoint) => checkpoint.uuid,
      cell: (checkpoint) => (
        <>
          <button type="button" className="as-link" onClick={() => onOpen(checkpoint.uuid)}>
            <code>{checkpoint.uuid.slice(0, 8)}</code>
          </button>{" "}
          <span className="d-only marks">
            <Marks of={checkpoint} marks={marks} registered={registered} />
          </span>
        </>
      ),
    },
    {
      id: "trial",
      head: "Trial",
      num: true,
      width: 80,
      least: 60,
      value: (checkpoint) => checkpoint.training?.trialId,
      cell: (checkpoint) =>
        checkpoint.training && (
          <Link to={`/experiments/${checkpoint.training.experimentId}/trials/${checkpoint.training.trialId}/overview`}>
            {checkpoint.training.trialId}
          </Link>
        ),
    },
    {
      id: "batches",
      head: "Batches",
      num: true,
      width: 96,
      least: 76,
      small: true,
      under: true,
      value: steps,
      cell: (checkpoint) => <Steps of={checkpoint} marks={marks} registered={registered} />,
    },
    {
      id: "metric",
      head: experiment?.searcherMetric || "Metric",
      num: true,
      width: 118,
      least: NUMBER_PX,
      small: true,
      value: (checkpoint) => checkpoint.training?.searcherMetric,
      cell: (checkpoint) => metricAt(checkpoint, experiment?.searcherMetric ?? ""),
    },
    { id: "size", head: "Size", num: true, width: 96, least: 80, value: bytesOf, cell: (checkpoint) => size(bytesOf(checkpoint)) },
    {
      id: "stored",
      head: "Stored",
      num: true,
      width: 120,
      least: 94,
      value: (checkpoint) => Date.parse(checkpoint.reportTime),
      cell: (checkpoint) => <Time at={checkpoint.reportTime} />,
    },
  ];
  if (!why) return base;
  const policy: Column<Checkpoint> = {
    id: "why",
    head: "With this policy",
    width: 296,
    least: 200,
    most: 400,
    value: (checkpoint) => (isThere(checkpoint) ? (going.has(checkpoint.uuid) ? "goes" : "stays") : ""),
    cell: (checkpoint) =>
      isThere(checkpoint) && (
        <Fate goes={going.has(checkpoint.uuid)} isModel={registered.has(checkpoint.uuid)} why={why.get(checkpoint.uuid) ?? ""} />
      ),
  };
  return [...base, policy];
}

const Fate = ({ goes, isModel, why }: { goes: boolean; isModel: boolean; why: string }) => (
  <span className="cut fate" title={why}>
    <span className={`state ${goes ? "error" : "done"}`}>
      {goes ? <Trash2 /> : isModel ? <Lock /> : <Tick />}
      <span>{goes ? "Goes" : "Stays"}</span>
    </span>{" "}
    <span className="ink2 sm">{why || (goes ? "" : "in use")}</span>
  </span>
);

/** The cell below the name has no header, so it names its unit. */
const Steps = (shown: Marked) => (
  <span>
    {number(steps(shown.of))}
    <span className="m-only tags-below">
      <span className="ink3"> batches</span>
      <Marks {...shown} />
    </span>
  </span>
);

interface Marked {
  of: Checkpoint;
  marks: Map<string, string>;
  registered: Set<string>;
}

const Marks = ({ of, marks, registered }: Marked) => (
  <>
    {marks.has(of.uuid) && <Tag kind="best">{marks.get(of.uuid)!}</Tag>} {registered.has(of.uuid) && <Tag kind="best">model</Tag>}
  </>
);
const steps = (checkpoint: Checkpoint) => Number(checkpoint.metadata.steps_completed ?? 0);

/** Best first for an experiment, whose newest checkpoints are of any trial; those of a trial stay newest first. */
function bestFirst(checkpoints: Checkpoint[], experiment?: Experiment): Checkpoint[] {
  if (!experiment) return checkpoints;
  const worst = isSmaller(experiment) ? Infinity : -Infinity;
  const value = (checkpoint: Checkpoint) => checkpoint.training?.searcherMetric ?? worst;
  const sign = isSmaller(experiment) ? 1 : -1;
  return checkpoints.toSorted((a, b) => (value(a) === value(b) ? 0 : sign * (value(a) - value(b))));
}

/** Marks the best and the latest checkpoint. */
function marksOf(checkpoints: Checkpoint[], experiment?: Experiment): Map<string, string> {
  const there = checkpoints.filter(isThere);
  const ranked = bestFirst(there, experiment).filter((checkpoint) => typeof checkpoint.training?.searcherMetric === "number");
  const names = new Map<string, string>();
  if (there[0]) names.set(there[0].uuid, "latest");
  if (experiment && ranked[0]) names.set(ranked[0].uuid, names.has(ranked[0].uuid) ? "best, latest" : "best");
  return names;
}

/** Checkpoints that are versions of models; empty until loaded. */
function useRegistered(): Set<string> {
  const answer = useData<{ checkpoints: string[] }>("model/checkpoints", ["models"]);
  return useMemo(() => new Set(answer.data?.checkpoints ?? []), [answer.data]);
}
