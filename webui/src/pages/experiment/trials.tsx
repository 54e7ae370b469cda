/** The trials of an experiment as a table, and the rungs of its search. */

import { createColumnHelper } from "@tanstack/react-table";
import { useMemo, useState } from "react";
import { Link, useNavigate } from "react-router";

import { useChange, useData } from "../../api/data";
import type { Experiment, Trial } from "../../api/types";
import { light } from "../../charts/light";
import { useLink } from "../../charts/link";
import { type Brackets, decisions, type Decision, Rungs } from "../../charts/search/rungs";
import { type Asked, Card, Confirm, Empty, Failure, State, Time, TrialLink } from "../../parts/basics";
import { colour, duration, flat, isOver, number, size, stateName } from "../../parts/format";
import { Table } from "../../parts/table";

const column = createColumnHelper<Trial>();
const SHOWN = 200;
const REST_MS = 2000;

export const metricOf = (trial: Trial, which: "bestValidation" | "latestValidation", metric: string) => {
  const value = trial[which]?.metrics.avgMetrics[metric];
  return typeof value === "number" ? value : null;
};

/** What the search decided of its trials; empty for a search without rungs. */
export function useRungs(one: Experiment, topics: string[]) {
  const halving = /halving|asha/.test(one.searcherType);
  const found = useData<{ brackets: Brackets }>(halving ? `experiments/${one.id}/rungs` : null, topics, false, REST_MS);
  const brackets = found.data?.brackets ?? NO_BRACKETS;
  return useMemo(() => ({ brackets, decided: decisions(brackets) }), [brackets]);
}
const NO_BRACKETS: Brackets = [];

const bytes = (files: Record<string, string>) => Object.values(files).reduce((sum, one) => sum + Number(one), 0);

function columnsOf(one: Experiment, names: string[], decided: Map<number, Decision>) {
  return [
    column.accessor("id", {
      header: "ID",
      meta: "num",
      cell: (cell) => (
        // biome-ignore lint/a11y/noStaticElementInteractions: shows the trial in the charts, too; the link works without
        <span onMouseEnter={() => light(cell.getValue())} onMouseLeave={() => light(null)}>
          <span className="dot" style={{ background: colour(cell.getValue()) }} aria-hidden />{" "}
          <TrialLink experiment={one.id} id={cell.getValue()} />
        </span>
      ),
    }),
    column.accessor("state", { header: "State", cell: ({ row }) => <State state={row.original.state} why={row.original.stateReason} /> }),
    column.accessor("totalBatchesProcessed", { header: "Batches", meta: "num", cell: (cell) => number(cell.getValue()) }),
    column.accessor((trial) => metricOf(trial, "bestValidation", one.searcherMetric) ?? undefined, {
      id: "best",
      header: `Best ${one.searcherMetric}`,
      meta: "num",
      sortUndefined: "last",
      cell: (cell) => <span title={String(cell.getValue() ?? "")}>{number(cell.getValue())}</span>,
    }),
    column.accessor((trial) => metricOf(trial, "latestValidation", one.searcherMetric) ?? undefined, {
      id: "latest",
      header: "Latest",
      meta: "num",
      sortUndefined: "last",
      cell: (cell) => <span title={String(cell.getValue() ?? "")}>{number(cell.getValue())}</span>,
    }),
    ...names.map((name) =>
      column.accessor((trial) => flat(trial.hparams)[name] as string | number, {
        id: `hp.${name}`,
        header: name,
        meta: "num",
        sortUndefined: "last",
        cell: (cell) => <span title={String(cell.getValue() ?? "")}>{number(cell.getValue())}</span>,
      }),
    ),
    ...(decided.size ? [column.accessor((trial) => decided.get(trial.id)?.text ?? "", { id: "search", header: "Search" })] : []),
    column.accessor("restarts", { header: "Restarts", meta: "num" }),
    column.accessor((trial) => trial.bestCheckpoint?.uuid ?? "", {
      id: "checkpoint",
      header: "Best checkpoint",
      enableSorting: false,
      cell: ({ row: { original: trial } }) =>
        trial.bestCheckpoint && (
          <Link
            to={`/experiments/${one.id}/trials/${trial.id}/checkpoints?checkpoint=${trial.bestCheckpoint.uuid}`}
            title={`at ${trial.bestCheckpoint.totalBatches} batches`}
          >
            <code>{trial.bestCheckpoint.uuid.slice(0, 8)}</code> {size(bytes(trial.bestCheckpoint.resources))}
          </Link>
        ),
    }),
    column.accessor("totalCheckpointSize", {
      header: "All",
      meta: "num",
      sortingFn: (a, b) => Number(a.original.totalCheckpointSize) - Number(b.original.totalCheckpointSize),
      cell: (cell) => size(cell.getValue()),
    }),
    column.accessor("startTime", { header: "Started", cell: (cell) => <Time at={cell.getValue()} /> }),
    column.accessor("wallClockTime", { header: "Ran", meta: "num", cell: (cell) => duration(cell.getValue()) }),
  ];
}

const NO_DECISIONS = new Map<number, Decision>();

/** A table of trials; the first of many, until more are asked for. */
export function TrialTable({
  one,
  trials,
  decided = NO_DECISIONS,
  extra,
}: {
  one: Experiment;
  trials: Trial[];
  decided?: Map<number, Decision>;
  extra?: { before: ReturnType<typeof column.display>; after: ReturnType<typeof column.display> };
}) {
  const [shown, setShown] = useState(SHOWN);
  const { params, set } = useLink();
  const [sorted, direction] = (params.get("so") ?? "").split("..");
  const names = useMemo(() => [...new Set(trials.flatMap((trial) => Object.keys(flat(trial.hparams))))], [trials]);
  const key = names.join("\n");
  // biome-ignore lint/correctness/useExhaustiveDependencies: `one` is another with every event, and its columns are not
  const columns = useMemo(() => {
    const plain = columnsOf(one, key ? key.split("\n") : [], decided);
    return extra ? [extra.before, ...plain, extra.after] : plain;
  }, [one.id, one.searcherMetric, key, decided, extra]);
  return (
    <>
      <Table
        name="Trials"
        rows={trials}
        most={shown}
        columns={columns}
        sort={sorted ? { id: sorted, desc: direction === "desc" } : null}
        onSort={(id, descending) => set({ so: id && `${id}..${descending ? "desc" : "asc"}` })}
      />
      {trials.length > shown && (
        <p>
          {shown} of {trials.length} trials.{" "}
          <button type="button" onClick={() => setShown(shown * 5)}>
            Show more
          </button>
        </p>
      )}
    </>
  );
}

export function Trials({ one, trials, topics }: { one: Experiment; trials: Trial[]; topics: string[] }) {
  const { params, set } = useLink();
  const navigate = useNavigate();
  const { brackets, decided } = useRungs(one, topics);
  const [state, find] = [params.get("st") ?? "", (params.get("q") ?? "").toLowerCase()];
  const chosen = useMemo(() => (params.get("t") ?? "").split(",").map(Number).filter(Boolean), [params]);
  const fitting = useMemo(
    () =>
      trials.filter(
        (trial) =>
          (!state || stateName(trial.state) === state) &&
          (!find || `${trial.id} ${JSON.stringify(trial.hparams)} ${decided.get(trial.id)?.text ?? ""}`.toLowerCase().includes(find)),
      ),
    [trials, state, find, decided],
  );
  const extra = useMemo(() => {
    const choose = (id: number, on: boolean) => set({ t: (on ? [...chosen, id] : chosen.filter((one) => one !== id)).join(",") });
    return {
      before: column.display({
        id: "choose",
        header: () => <span className="hidden">Choose</span>,
        cell: ({ row }) => (
          <input
            type="checkbox"
            aria-label={`Choose trial ${row.original.id}`}
            checked={chosen.includes(row.original.id)}
            onChange={(event) => choose(row.original.id, event.target.checked)}
          />
        ),
      }),
      after: column.display({
        id: "actions",
        header: () => <span className="hidden">Actions</span>,
        cell: ({ row }) => <TrialActions one={row.original} />,
      }),
    };
  }, [chosen, set]);
  if (!trials.length) return <Empty>No trial yet. They appear here as the search asks for them.</Empty>;
  const states = [...new Set(trials.map((trial) => stateName(trial.state)))].sort();
  return (
    <>
      {brackets.length > 0 && (
        <Card
          title="Rungs of the search"
          more={<span className="soft">disk: promoted or at the top · ring: stopped or waiting · cross: gave up</span>}
        >
          <Rungs
            brackets={brackets}
            metric={one.searcherMetric}
            onOpen={(id) => navigate(`/experiments/${one.id}/trials/${id}/overview`)}
          />
        </Card>
      )}
      <div className="controls">
        <label>
          find
          <input
            type="search"
            value={params.get("q") ?? ""}
            placeholder="id, hyperparameter, decision"
            onChange={(event) => set({ q: event.target.value })}
          />
        </label>
        <label>
          state
          <select value={state} onChange={(event) => set({ st: event.target.value })}>
            <option value="">any</option>
            {states.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
        <button
          type="button"
          disabled={!chosen.length}
          title={chosen.length ? "" : "Choose trials first"}
          onClick={() => navigate(`/experiments/compare?t=${chosen.join(",")}`)}
        >
          Compare {chosen.length || ""}
        </button>
        {chosen.length > 0 && (
          <button type="button" onClick={() => set({ t: "" })}>
            Choose none
          </button>
        )}
        <span className="soft" role="status">
          {fitting.length === trials.length ? `${trials.length} trials` : `${fitting.length} of ${trials.length} trials`}
        </span>
      </div>
      <Card>
        <TrialTable one={one} trials={fitting} decided={decided} extra={extra} />
      </Card>
    </>
  );
}

function TrialActions({ one }: { one: Trial }) {
  const [asked, setAsked] = useState<Asked | null>(null);
  const change = useChange();
  const ask = () =>
    setAsked({
      title: `Kill trial ${one.id}?`,
      text: "It ends at once; what it has not saved is lost. Its experiment goes on.",
      verb: "Kill",
      act: () => change.mutate({ method: "POST", path: `trials/${one.id}/kill` }),
    });
  const over = isOver(one.state);
  return (
    <span className="actions">
      <Link to={`/experiments/${one.experimentId}/trials/${one.id}/logs`}>Logs</Link>
      <button type="button" disabled={over} title={over ? "Not possible: it has ended" : ""} onClick={ask}>
        Kill
      </button>
      <Confirm asked={asked} onClose={() => setAsked(null)} />
      {change.error ? <Failure error={change.error} /> : null}
    </span>
  );
}
