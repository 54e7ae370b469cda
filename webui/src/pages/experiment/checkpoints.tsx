import { ArrowDownToLine, Box, Check as Tick, Layers, Lock, Trash2 } from "lucide-react";
import { useMemo, useState } from "react";
import { Link, useSearchParams } from "react-router";

import { useChange, useData } from "../../api/data";
import { ANYWHERE, useRights } from "../../api/rights";
import type { Checkpoint, Experiment } from "../../api/types";
import { digits, number, size } from "../../parts/format";
import { Button, IconButton, LinkButton, Segments } from "../../ui/button";
import { ask } from "../../ui/dialog";
import { useOpen } from "../../ui/drawer";
import { Search } from "../../ui/field";
import { useNarrow } from "../../ui/media";
import { Empty, Failure, Loaded } from "../../ui/status";
import { type Column, Table } from "../../ui/table";
import { Tag, Time } from "../../ui/text";
import { CheckpointDrawer, Metadata, Register } from "./checkpoint";
import "./checkpoints.css";
import { isSmaller } from "./listed";
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
  const found = useData<{ checkpoints: Checkpoint[] }>(`${of}/checkpoints?sortBy=SORT_BY_END_TIME&orderBy=ORDER_BY_DESC`, topics);
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
  const everything = found.data?.checkpoints ?? [];
  const why = useMemo(
    () => (experiment && policy ? reasons(everything.filter(isThere), experiment, policy, registered) : null),
    [everything, experiment, policy, registered],
  );
  const marks = useMemo(() => marksOf(everything, experiment), [everything, experiment]);
  const lists: Record<View, Checkpoint[]> = {
    stored: everything.filter(isThere),
    going: everything.filter((one) => isThere(one) && going.has(one.uuid)),
    deleted: everything.filter((one) => !isThere(one)),
  };
  const rows = bestFirst(lists[view], experiment).filter((one) => fits(one, wanted));
  const remove = async (some: Checkpoint[]) => {
    const sum = size(some.reduce((total, one) => total + bytesOf(one), 0));
    const what = some.length === 1 ? `checkpoint ${some[0]!.uuid.slice(0, 8)}` : `${some.length} checkpoints`;
    if (
      await ask({
        title: `Delete ${what}?`,
        text: `${sum} are permanently deleted. Metrics are kept.`,
        verb: `Delete ${what}`,
        danger: true,
      })
    )
      change.mutate({ method: "DELETE", path: "checkpoints", body: { checkpointUuids: some.map((one) => one.uuid) } });
  };
  const opened = everything.find((one) => one.uuid === open);
  const step = (by: number) => {
    const next = rows[rows.findIndex((one) => one.uuid === open) + by];
    if (next) setOpen(next.uuid);
  };
  const columns = columnsOf({ experiment, marks, registered, why, going });
  return (
    <>
      {experiment && policy && everything.length > 0 && (
        <PolicyCard one={experiment} checkpoints={everything} tried={policy} onTry={setTried} going={going} registered={registered} />
      )}
      {error ? <Failure error={error} /> : null}
      {change.error ? <Failure error={change.error} /> : null}
      <Loaded found={found}>
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
                    onClick={() => void remove(everything.filter((one) => chosen.has(one.uuid) && isThere(one)))}
                  >
                    Delete {chosen.size}
                  </Button>
                )}
              </div>
              <Table
                name="Checkpoints"
                store="checkpoints"
                rows={rows}
                id={(one) => one.uuid}
                columns={columns}
                selected={chosen}
                onSelect={setChosen}
                open={open}
                onOpen={(one) => setOpen(one.uuid)}
                called={(one) => `checkpoint ${one.uuid.slice(0, 8)}`}
                actWidth={narrow ? undefined : 110}
                act={(one) =>
                  isThere(one) &&
                  !narrow && (
                    <>
                      <LinkButton small kind="ghost" icon={<ArrowDownToLine />} label="Download" href={`/checkpoints/${one.uuid}`} />
                      <IconButton
                        icon={<Box />}
                        label="Register as a model"
                        not={rights("edit", ANYWHERE)}
                        onClick={() => setRegistering(one.uuid)}
                      />
                    </>
                  )
                }
                actions={(one) => [
                  { name: "Open", act: () => setOpen(one.uuid) },
                  {
                    name: "Download",
                    icon: <ArrowDownToLine />,
                    not: isThere(one) ? undefined : "its files are gone",
                    act: () => location.assign(`/checkpoints/${one.uuid}`),
                  },
                  {
                    name: "Register as a model",
                    icon: <Box />,
                    not: isThere(one) ? rights("edit", ANYWHERE) : "its files are gone",
                    act: () => setRegistering(one.uuid),
                  },
                  { name: "Copy id", act: () => void navigator.clipboard?.writeText(one.uuid) },
                  null,
                  {
                    name: "Delete",
                    icon: <Trash2 />,
                    danger: true,
                    not: isThere(one) ? undeletable : "its files are gone",
                    act: () => void remove([one]),
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
          one={opened}
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
      {comparing && <Metadata some={everything.filter((one) => chosen.has(one.uuid))} onClose={() => setComparing(false)} />}
    </>
  );
}

/** Matches `trial:164`, part of an id, or both. */
function fits(one: Checkpoint, wanted: string): boolean {
  return wanted
    .trim()
    .split(/\s+/)
    .filter(Boolean)
    .every((word) => (word.startsWith("trial:") ? String(one.training?.trialId) === word.slice(6) : one.uuid.includes(word.toLowerCase())));
}

interface Telling {
  experiment?: Experiment;
  marks: Map<string, string>;
  registered: Set<string>;
  why: Map<string, string> | null;
  going: Set<string>;
}

function columnsOf({ experiment, marks, registered, why, going }: Telling): Column<Checkpoint>[] {
  const base: Column<Checkpoint>[] = [
    {
      id: "uuid",
      head: "Checkpoint",
      name: true,
      value: (one) => one.uuid,
      title: (one) => one.uuid,
      cell: (one) => (
        <>
          <code>{one.uuid.slice(0, 8)}</code>{" "}
          <span className="d-only marks">
            <Marks of={one} marks={marks} registered={registered} />
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
      value: (one) => one.training?.trialId,
      cell: (one) =>
        one.training && (
          <Link to={`/experiments/${one.training.experimentId}/trials/${one.training.trialId}/overview`}>{one.training.trialId}</Link>
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
      cell: (one) => <Steps of={one} marks={marks} registered={registered} />,
    },
    {
      id: "metric",
      head: experiment?.searcherMetric || "Metric",
      num: true,
      width: 118,
      least: 92,
      small: true,
      value: (one) => one.training?.searcherMetric,
      cell: (one) => (typeof one.training?.searcherMetric === "number" ? digits(one.training.searcherMetric) : ""),
    },
    { id: "size", head: "Size", num: true, width: 96, least: 80, value: bytesOf, cell: (one) => size(bytesOf(one)) },
    {
      id: "stored",
      head: "Stored",
      num: true,
      width: 120,
      least: 94,
      value: (one) => Date.parse(one.reportTime),
      cell: (one) => <Time at={one.reportTime} />,
    },
  ];
  if (!why) return base;
  const policy: Column<Checkpoint> = {
    id: "why",
    head: "With this policy",
    width: 296,
    least: 200,
    most: 400,
    value: (one) => (isThere(one) ? (going.has(one.uuid) ? "goes" : "stays") : ""),
    cell: (one) => isThere(one) && <Fate goes={going.has(one.uuid)} isModel={registered.has(one.uuid)} why={why.get(one.uuid) ?? ""} />,
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
const steps = (one: Checkpoint) => Number(one.metadata.steps_completed ?? 0);

/** Best first for an experiment, whose newest checkpoints are of any trial; those of a trial stay newest first. */
function bestFirst(checkpoints: Checkpoint[], experiment?: Experiment): Checkpoint[] {
  if (!experiment) return checkpoints;
  const worst = isSmaller(experiment) ? Infinity : -Infinity;
  const value = (one: Checkpoint) => one.training?.searcherMetric ?? worst;
  const sign = isSmaller(experiment) ? 1 : -1;
  return checkpoints.toSorted((a, b) => (value(a) === value(b) ? 0 : sign * (value(a) - value(b))));
}

/** Marks the best and the latest checkpoint. */
function marksOf(checkpoints: Checkpoint[], experiment?: Experiment): Map<string, string> {
  const there = checkpoints.filter(isThere);
  const ranked = bestFirst(there, experiment).filter((one) => typeof one.training?.searcherMetric === "number");
  const found = new Map<string, string>();
  if (there[0]) found.set(there[0].uuid, "latest");
  if (experiment && ranked[0]) found.set(ranked[0].uuid, found.has(ranked[0].uuid) ? "best, latest" : "best");
  return found;
}

/** Checkpoints that are versions of models; empty until loaded. */
function useRegistered(): Set<string> {
  const found = useData<{ checkpoints: string[] }>("model/checkpoints", ["models"]);
  return useMemo(() => new Set(found.data?.checkpoints ?? []), [found.data]);
}
