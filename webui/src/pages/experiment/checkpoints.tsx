import { createColumnHelper } from "@tanstack/react-table";
import { type FormEvent, useMemo, useState } from "react";
import { useSearchParams } from "react-router";

import { useChange, useData } from "../../api/data";
import type { Checkpoint, Experiment } from "../../api/types";
import { type Asked, Card, Confirm, Copyable, Empty, Failure, Loaded, State, Time, TrialLink } from "../../parts/basics";
import { number, size } from "../../parts/format";
import { Popup } from "../../parts/popup";
import { Table } from "../../parts/table";
import { type Policy, PolicyCard, policyOf, reasons, useGoing } from "./policy";

const STATES = ["COMPLETED", "PARTIALLY_DELETED", "DELETED", "ERROR"];
const column = createColumnHelper<Checkpoint>();
const bytes = (one: Checkpoint) => Object.values(one.resources).reduce((sum, part) => sum + Number(part), 0);
const isThere = (one: Checkpoint) => one.state === "STATE_COMPLETED" || one.state === "STATE_PARTIALLY_DELETED";

/** Checkpoints of an experiment or of a trial; with the experiment also what is kept, and why. */
export function Checkpoints({ of, topics, experiment }: { of: string; topics: string[]; experiment?: Experiment }) {
  const [params, setParams] = useSearchParams();
  const [state, open] = [params.get("state") ?? "", params.get("checkpoint") ?? ""];
  const found = useData<{ checkpoints: Checkpoint[] }>(`${of}/checkpoints?sortBy=SORT_BY_END_TIME&orderBy=ORDER_BY_DESC`, topics);
  const models = useRegistered();
  const [tried, setTried] = useState<Policy | null>(null);
  const policy = experiment ? (tried ?? policyOf(experiment)) : null;
  const { going, error } = useGoing(experiment, policy, topics);
  const [asked, setAsked] = useState<Asked | null>(null);
  const change = useChange();
  const set = (name: string, value: string) =>
    setParams(
      (before) => {
        if (value) before.set(name, value);
        else before.delete(name);
        return before;
      },
      { replace: true },
    );
  const remove = (one: Checkpoint) =>
    setAsked({
      title: "Delete this checkpoint?",
      text: `${one.uuid} of trial ${one.training?.trialId ?? "?"} at step ${one.metadata.steps_completed ?? "?"}, ${size(bytes(one))}, is deleted for ever.`,
      verb: "Delete",
      act: () => change.mutate({ method: "DELETE", path: "checkpoints", body: { checkpointUuids: [one.uuid] } }),
    });
  const everything = found.data?.checkpoints ?? [];
  const why = useMemo(
    () => (experiment && policy ? reasons(everything.filter(isThere), experiment, policy, models) : null),
    [everything, experiment, policy, models],
  );
  const best = useMemo(() => bestOf(everything, experiment), [everything, experiment]);
  const columns = [
    column.accessor("uuid", {
      header: "Checkpoint",
      enableSorting: false,
      cell: ({ row: { original: one } }) => (
        <>
          <button
            type="button"
            className="link"
            aria-expanded={open === one.uuid}
            onClick={() => set("checkpoint", open === one.uuid ? "" : one.uuid)}
          >
            <code>{one.uuid.slice(0, 8)}</code>
          </button>{" "}
          {best === one.uuid && <span className="label">best</span>}{" "}
          {everything[0]?.uuid === one.uuid && <span className="label">latest</span>}
          {models.has(one.uuid) && <span className="label">model</span>}
        </>
      ),
    }),
    column.accessor((one) => one.training?.trialId, {
      id: "trial",
      header: "Trial",
      meta: "num",
      cell: ({ row: { original: one } }) => one.training && <TrialLink experiment={one.training.experimentId} id={one.training.trialId} />,
    }),
    column.accessor((one) => Number(one.metadata.steps_completed ?? 0), {
      id: "batches",
      header: "Batches",
      meta: "num",
      cell: (cell) => number(cell.getValue()),
    }),
    column.accessor((one) => one.training?.searcherMetric ?? undefined, {
      id: "metric",
      header: experiment?.searcherMetric || "Metric",
      meta: "num",
      sortUndefined: "last",
      cell: (cell) => number(cell.getValue()),
    }),
    column.accessor("state", { header: "State", cell: (cell) => <State state={cell.getValue()} /> }),
    column.accessor(bytes, { id: "size", header: "Size", meta: "num", cell: (cell) => size(cell.getValue()) }),
    column.accessor((one) => Date.parse(one.reportTime), {
      id: "stored",
      header: "Stored",
      cell: ({ row: { original: one } }) => <Time at={one.reportTime} />,
    }),
    ...(why
      ? [
          column.display({
            id: "why",
            header: "Kept",
            cell: ({ row: { original: one } }) =>
              !isThere(one) ? "" : going.has(one.uuid) ? <span className="bad">will go</span> : why.get(one.uuid) || "in use",
          }),
        ]
      : []),
    column.display({
      id: "actions",
      header: () => <span className="hidden">Actions</span>,
      cell: ({ row: { original: one } }) => (
        <span className="actions">
          {isThere(one) && <a href={`/checkpoints/${one.uuid}`}>Download</a>}
          {isThere(one) && (
            <Popup name="Register">
              <Register uuid={one.uuid} />
            </Popup>
          )}
          <button type="button" disabled={!isThere(one)} title={isThere(one) ? "" : "Its files are gone"} onClick={() => remove(one)}>
            Delete
          </button>
        </span>
      ),
    }),
  ];
  return (
    <>
      {experiment && policy && everything.length > 0 && (
        <PolicyCard one={experiment} checkpoints={everything} tried={policy} onTry={setTried} going={going} />
      )}
      {error ? <Failure error={error} /> : null}
      <Card>
        <Confirm asked={asked} onClose={() => setAsked(null)} />
        {change.error ? <Failure error={change.error} /> : null}
        <Loaded found={found}>
          {({ checkpoints }) =>
            checkpoints.length ? (
              <>
                <div className="controls">
                  <label>
                    state
                    <select value={state} onChange={(event) => set("state", event.target.value)}>
                      <option value="">any</option>
                      {STATES.map((one) => (
                        <option key={one}>{one}</option>
                      ))}
                    </select>
                  </label>
                </div>
                <Table
                  name="Checkpoints"
                  rows={checkpoints.filter((one) => !state || one.state === `STATE_${state}`)}
                  columns={columns}
                  below={(one) => (one.uuid === open ? <Details one={one} /> : null)}
                />
              </>
            ) : (
              <Empty command='with core_context.checkpoint.store_path({"steps_completed": steps}) as (path, uuid): ...'>
                No checkpoint yet. A script stores them with core_context.checkpoint.
              </Empty>
            )
          }
        </Loaded>
      </Card>
    </>
  );
}

function bestOf(checkpoints: Checkpoint[], experiment?: Experiment): string {
  const sign = experiment?.config.searcher?.smaller_is_better === false ? -1 : 1;
  const ranked = checkpoints.filter((one) => isThere(one) && typeof one.training?.searcherMetric === "number");
  ranked.sort((a, b) => sign * (a.training!.searcherMetric! - b.training!.searcherMetric!));
  return experiment ? (ranked[0]?.uuid ?? "") : "";
}

interface Models {
  models: { name: string; versions?: unknown }[];
}

/** Checkpoints that are versions of models; empty until it is known. */
function useRegistered(): Set<string> {
  const found = useData<{ checkpoints: string[] }>("model/checkpoints", ["models"]);
  return useMemo(() => new Set(found.data?.checkpoints ?? []), [found.data]);
}

function Register({ uuid }: { uuid: string }) {
  const models = useData<Models>("models?archived=false", ["models"]);
  const [done, setDone] = useState("");
  const made = useChange();
  const change = useChange((answer) => setDone(`Registered as version ${answer.modelVersion.version}.`));
  const register = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const name = String(new FormData(event.currentTarget).get("model")).trim();
    if (!models.data?.models.some((one) => one.name === name)) await made.mutateAsync({ method: "POST", path: "models", body: { name } });
    change.mutate({ method: "POST", path: `models/${encodeURIComponent(name)}/versions`, body: { checkpointUuid: uuid } });
  };
  return (
    <form className="form" onSubmit={(event) => void register(event).catch(() => undefined)}>
      <label>
        Model, a new one or one that there is
        <input name="model" list={`models-${uuid}`} required />
      </label>
      <datalist id={`models-${uuid}`}>
        {models.data?.models.map((one) => (
          <option key={one.name}>{one.name}</option>
        ))}
      </datalist>
      <button type="submit">Register</button> <span role="status">{done}</span>
      {made.error || change.error ? <Failure error={made.error ?? change.error} /> : null}
    </form>
  );
}

function Details({ one }: { one: Checkpoint }) {
  return (
    <div>
      <p>
        <Copyable text={one.uuid} /> <Copyable text={`det checkpoint download ${one.uuid}`} />
      </p>
      <p className="soft">To load it</p>
      <pre tabIndex={0}>{`from determined.experimental import client\n\npath = client.get_checkpoint("${one.uuid}").download()`}</pre>
      <p className="soft">Metadata</p>
      <pre tabIndex={0}>{JSON.stringify(one.metadata, null, 2)}</pre>
      <p className="soft">Files</p>
      <ul className="plain">
        {Object.entries(one.resources).map(([path, part]) => (
          <li key={path}>
            <code>{path}</code> <span className="soft">{size(part)}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}
